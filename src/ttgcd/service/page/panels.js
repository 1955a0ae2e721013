// Streams and their settings, history, questions, upload.
import { html, useState } from "/page/vendor/preact-htm.js";
import { Picture } from "/page/wall.js";

export function NewStream({ onCreate, onCancel }) {
  const submit = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const known = form.get("known").split(/[\n,]/).map((w) => w.trim()).filter(Boolean);
    const said = { name: form.get("name").trim(), known };
    const novel = form.get("novel").trim();
    said.novel = novel === "" || novel === "auto" ? "auto" : Number(novel);
    for (const key of ["warmup", "batch_size"]) if (form.get(key)) said[key] = Number(form.get(key));
    onCreate(said);
  };
  return html`<form class="panel" onSubmit=${submit} aria-label="new stream">
    <h2>New stream</h2>
    <label>Name <input name="name" required pattern="[a-z0-9][a-z0-9_\\-]*" maxlength="64" placeholder="camera-1" /></label>
    <label>Known classes, by comma or line; none to group everything <textarea name="known" rows="4" placeholder="cat, dog, bicycle"></textarea></label>
    <label>Novel categories, or groups <input name="novel" placeholder="auto" inputmode="numeric" pattern="auto|[0-9]*" /></label>
    <label>Images of the warm-up <input name="warmup" type="number" min="2" max="100000" placeholder="1024" /></label>
    <label>Images learned from at once <input name="batch_size" type="number" min="1" max="1024" placeholder="128" /></label>
    <div class="buttons"><button class="primary">Create</button>${onCancel ? html`<button type="button" onClick=${onCancel}>Cancel</button>` : null}</div>
  </form>`;
}

export function History({ edits, onUndo, onRedo }) {
  const shown = edits.filter((e) => e.op !== "undo" && e.op !== "redo").reverse();
  if (!shown.length) return html`<p class="quiet">No edits yet. Everything you change can be undone here.</p>`;
  return html`<ol class="history">${shown.map((e) => html`<li key=${e.number} class=${e.in_force ? "" : "undone"}>
    <span>${e.text}</span><small>${e.when.replace("T", " ").replace("+00:00", "")} ${e.who}${e.problem ? ` · ${e.problem}` : ""}</small>
    ${e.in_force ? html`<button onClick=${() => onUndo(e.number)} aria-label=${`undo ${e.text}`}>undo</button>`
      : html`<button onClick=${() => onRedo(e.number)} aria-label=${`redo ${e.text}`}>redo</button>`}</li>`)}</ol>`;
}

export function Questions({ stream, questions, categories, onEdit, onOpen }) {
  const [passed, setPassed] = useState(new Set());
  const by = new Map(categories.map((c) => [c.id, c]));
  const key = (q) => `${q.ask} ${q.categories} ${q.image?.index}`;
  const left = questions.filter((q) => !passed.has(key(q)) && q.categories.every((id) => by.has(id)));
  const pass = (q) => setPassed(new Set([...passed, key(q)]));
  if (!left.length) return html`<p class="quiet">Nothing to ask: no two categories look alike, no image lies between two.</p>`;
  const few = (id) => html`<span class="few">${by.get(id).exemplars.slice(0, 3).map((i) => html`<${Picture} key=${i} stream=${stream} index=${i} size=${96} />`)}</span>`;
  const name = (id) => by.get(id).name;
  return html`<ul class="questions">${left.map((q) => {
    const [a, b] = q.categories;
    if (q.ask === "same") {
      const [from, into] = by.get(a).kind === "novel" ? [a, b] : [b, a];
      return html`<li key=${key(q)}>${few(a)}${few(b)}<p>Are <b>${name(a)}</b> and <b>${name(b)}</b> the same?</p>
        <div class="buttons"><button class="primary" onClick=${() => onEdit({ op: "merge", category: from, into })}>Merge</button><button onClick=${() => pass(q)}>Different</button></div></li>`;
    }
    if (q.ask === "mixed") return html`<li key=${key(q)}>${few(a)}<p>Is <b>${name(a)}</b> two things?</p>
        <div class="buttons"><button class="primary" onClick=${() => onEdit({ op: "split", category: a })}>Split in two</button><button onClick=${() => onOpen(a)}>Look</button><button onClick=${() => pass(q)}>One</button></div></li>`;
    return html`<li key=${key(q)}>${q.image ? html`<span class="few"><${Picture} stream=${stream} index=${q.image.index} size=${96} label=${q.image.id} /></span>` : null}<p>Which is it?</p>
        <div class="buttons">${q.categories.map((id) => html`<button onClick=${() => onEdit({ op: "move", images: [q.image.index], into: id })}>${name(id)}</button>`)}<button onClick=${() => pass(q)}>Skip</button></div></li>`;
  })}</ul>`;
}

export function Settings({ info, url, pause, finish, remove }) {
  const [sure, setSure] = useState(false);
  const facts = [["method", info.method], ["known classes", info.known], [info.known ? "novel categories so far" : "groups so far", info.novel], ["warm-up", info.warmup ?? "none"],
    ["learned from at once", info.batch_size], ["seed", info.seed], ["images", info.images.toLocaleString()], ["learned from", info.learned.toLocaleString()],
    ["finished at", info.finished ? info.finished.toLocaleString() : "not yet"], ["on disk", `${(info.bytes / 2 ** 20).toFixed(1)} MB`]];
  const unfinished = info.images > info.finished;
  return html`<section class="settings" aria-label="settings">
    <h2>${info.name}</h2>
    <dl class="facts">${facts.map(([key, value]) => html`<div><dt>${key}</dt><dd>${value}</dd></div>`)}</dl>
    <h2>Export</h2>
    <div class="buttons">${["csv", "parquet", "report"].map((f) => html`<a class="button" href=${`${url}/download?format=${f}`} download>${f === "csv" ? "CSV" : f === "report" ? "Report (one page)" : "Parquet"}</a>`)}</div>
    <h2>Stream</h2>
    <div class="buttons">
      <button onClick=${finish} disabled=${!unfinished} title="learn from the last images too and look at all answers again; images may come afterwards">Finish stream</button>
      <button onClick=${pause}>${info.paused ? "Resume" : "Pause"}</button>
      ${sure ? html`<button class="danger" onClick=${remove}>Delete ${info.name} and its ${info.images.toLocaleString()} images</button><button onClick=${() => setSure(false)}>Keep it</button>`
        : html`<button onClick=${() => setSure(true)}>Delete…</button>`}
    </div></section>`;
}

export function Login({ onToken, problem }) {
  return html`<form class="panel login" onSubmit=${(e) => { e.preventDefault(); onToken(new FormData(e.target).get("token")); }}>
    <h1>ttgcd live</h1><label>Token <input name="token" type="password" autocomplete="current-password" required /></label>
    ${problem ? html`<p class="problem" role="alert">${problem}</p>` : null}<button class="primary">Enter</button></form>`;
}
