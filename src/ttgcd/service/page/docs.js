// The API as /openapi.json tells it.
import { html, render } from "/page/vendor/preact-htm.js";

const say = (schema) => {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(say).join(" | ");
  if (schema.type === "array") return `[${say(schema.items)}]`;
  return schema.const ?? schema.enum?.join(" | ") ?? schema.type ?? "";
};
const Operation = ({ path, verb, told }) => html`
  <details class="operation">
    <summary><b class=${"verb " + verb}>${verb.toUpperCase()}</b> <code>${path}</code> <span>${told.summary}</span></summary>
    <p>${told.description}</p>
    ${told.parameters?.length ? html`<table><caption>Parameters</caption><tbody>${told.parameters.map(
      (p) => html`<tr><td><code>${p.name}</code></td><td>${p.in}</td><td>${say(p.schema)}</td></tr>`)}</tbody></table>` : null}
    ${told.requestBody ? html`<p>Body: ${Object.entries(told.requestBody.content).map(([kind, { schema }]) => html`<code>${kind}</code> ${say(schema)} `)}</p>` : null}
    <p>Answers: ${Object.entries(told.responses).map(([status, r]) => html`<code title=${r.description}>${status}</code> `)}</p>
  </details>`;
const Schema = ({ name, told }) => html`
  <details class="operation" id=${name}><summary><code>${name}</code> <span>${told.description?.split("\n")[0]}</span></summary>
    <table><tbody>${Object.entries(told.properties ?? {}).map(
      ([key, s]) => html`<tr><td><code>${key}</code></td><td>${say(s)}</td></tr>`)}</tbody></table></details>`;

const answer = await fetch("/openapi.json");
const api = answer.ok ? await answer.json() : { paths: {}, components: { schemas: {} }, info: {} };
render(html`<h1>ttgcd ${api.info.version} <a href="/">the page</a></h1>
  <p>Errors are <code>{"error", "error_type"}</code>; with a token: <code>Authorization: Bearer …</code>. The whole description: <a href="/openapi.json">/openapi.json</a>.</p>
  ${Object.entries(api.paths).flatMap(([path, verbs]) => Object.entries(verbs).map(
    ([verb, told]) => html`<${Operation} path=${path} verb=${verb} told=${told} />`))}
  <h2>Records</h2>
  ${Object.entries(api.components.schemas).map(([name, told]) => html`<${Schema} name=${name} told=${told} />`)}`,
  document.getElementById("docs"));
