# docker build -t ttgcd .
# docker run --rm -v "$PWD:/data" ttgcd discover photos/ --known @names.txt --out found
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/ttgcd-*.whl)[heic,figures]" && rm -r /wheels
# Files in the mounted folder should belong to a user, not to root: docker run --user "$(id -u)".
RUN useradd --create-home ttgcd
USER ttgcd
ENV HF_HOME=/data/.huggingface
WORKDIR /data
ENTRYPOINT ["ttgcd"]
CMD ["--help"]
