// What the page asks of the service.
export class ApiError extends Error {
  constructor(status, record) {
    super(record.error ?? `status ${status}`);
    this.status = status;
  }
}

export async function ask(path, body, method = body === undefined ? "GET" : "POST") {
  const options = { method };
  if (body instanceof FormData) options.body = body;
  else if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { "Content-Type": "application/json" };
  }
  const answer = await fetch(path, options);
  if (answer.status === 204) return null;
  const record = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new ApiError(answer.status, record);
  return record;
}

export const picture = (stream, index, size = 192) => `/v1/streams/${stream}/images/${index}/thumbnail?size=${size}`;

// Files in groups that one request may hold, with a say in between. The id is the file's name and
// a few digits of its content: the same file again is the same image.
export async function upload(stream, files, told) {
  let done = 0;
  const refused = [];
  for (let start = 0; start < files.length; start += 16) {
    const form = new FormData();
    for (const file of files.slice(start, start + 16)) {
      const data = await file.arrayBuffer();
      form.append("images", new Blob([data], { type: file.type }), await nameOf(file, data));
    }
    for (let tries = 0; ; tries += 1) {
      try {
        const { results } = await ask(`/v1/streams/${stream}/images`, form);
        refused.push(...results.filter((r) => r.error));
        break;
      } catch (error) {
        if (error.status === 429 && tries < 30) await new Promise((go) => setTimeout(go, 2000));
        else if ([409, 413, 415, 422].includes(error.status)) { refused.push({ error: error.message }); break; }
        else throw error;
      }
    }
    done = Math.min(files.length, start + 16);
    told(done, files.length, refused);
  }
  return refused;
}

async function nameOf(file, data) {
  let mark = file.size.toString(16);
  if (globalThis.crypto?.subtle) {
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", data));
    mark = [...digest.slice(0, 4)].map((b) => b.toString(16).padStart(2, "0")).join("");
  }
  return `${file.name}#${mark}`;
}
