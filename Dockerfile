# docker build -t ttgcd .
# docker run --rm -v "$PWD:/data" ttgcd discover photos/ --known @names.txt --out found
# docker run --rm -v "$PWD:/data" -p 127.0.0.1:8000:8000 -e TTGCD_TOKEN=... ttgcd serve --host 0.0.0.0
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
# Where pip finds packages, if not where it usually does: torch without CUDA is ten times smaller.
#   docker build --build-arg PIP_EXTRA_INDEX_URL=... -t ttgcd .
ARG PIP_INDEX_URL PIP_EXTRA_INDEX_URL
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/ttgcd-*.whl)[heic,figures,serve]" && rm -r /wheels
# Files in the mounted folder should belong to a user, not to root: docker run --user "$(id -u)".
RUN useradd --create-home ttgcd
USER ttgcd
ENV HF_HOME=/data/.huggingface
WORKDIR /data
EXPOSE 8000
# Of a service; a container that runs another command is gone before it is asked.
HEALTHCHECK --interval=30s --start-period=60s CMD \
  python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health', timeout=3)"
ENTRYPOINT ["ttgcd"]
CMD ["--help"]
