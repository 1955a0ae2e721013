// The live page: one stream in sight, everything about it kept up to date by its events.
import { html, render, useCallback, useEffect, useMemo, useRef, useState } from "/page/vendor/preact-htm.js";
import { ask, upload } from "/page/api.js";
import { Gallery, Wall, pageOf } from "/page/wall.js";
import { Figures, StarMap } from "/page/figures.js";
import { History, Login, NewStream, Questions } from "/page/panels.js";

const TABS = ["wall", "images", "doubtful", "questions", "map", "figures", "history"];
const fromHash = () => {
  const [stream, tab, category] = location.hash.slice(1).split("/");
  return { stream: stream || null, tab: TABS.includes(tab) ? tab : "wall", category: category ? Number(category) : null };
};

function App() {
  const [streams, setStreams] = useState(null), [locked, setLocked] = useState(null);
  const [place, setPlace] = useState(fromHash());
  const [creating, setCreating] = useState(false), [notice, setNotice] = useState(null);
  const say = useCallback((text, kind = "info") => { setNotice({ text, kind }); }, []);
  useEffect(() => { if (notice) { const t = setTimeout(() => setNotice(null), 6000); return () => clearTimeout(t); } }, [notice]);
  const refresh = useCallback(async () => {
    try {
      setStreams((await ask("/v1/streams")).streams);
      setLocked(null);
    } catch (error) {
      if (error.status === 401) setLocked("");
      else if (error.status !== 503) say(error.message, "problem");
    }
  }, []);
  useEffect(() => {
    refresh();
    const every = setInterval(refresh, 3000), moved = () => setPlace(fromHash());
    addEventListener("hashchange", moved);
    return () => { clearInterval(every); removeEventListener("hashchange", moved); };
  }, []);
  const go = (stream, tab = "wall", category = null) => { location.hash = [stream, tab, category ?? ""].join("/").replace(/\/$/, ""); };
  if (locked !== null) {
    const enter = (token) => ask("/v1/login", { token }).then(refresh).catch((error) => setLocked(error.message));
    return html`<main><${Login} onToken=${enter} problem=${locked} /></main>`;
  }
  if (streams === null) return html`<main><p class="quiet" role="status">Starting…</p></main>`;
  const info = streams.find((s) => s.name === place.stream) ?? streams[0];
  const create = (said) => ask("/v1/streams", said).then(async ({ name }) => { setCreating(false); await refresh(); go(name); }).catch((error) => say(error.message, "problem"));
  return html`
    <header>
      <a class="brand" href="#" aria-label="ttgcd live"><img src="/page/icon.svg" alt="" width="28" height="28" /> ttgcd</a>
      ${streams.length ? html`<label class="pick">Stream <select value=${info.name} onChange=${(e) => go(e.target.value)}>${streams.map((s) => html`<option value=${s.name}>${s.name}</option>`)}</select></label>` : null}
      <button onClick=${() => setCreating(true)}>New stream</button>
      <a href="/docs">API</a>
    </header>
    <div role="status" aria-live="polite" class="notices">${notice ? html`<p class=${notice.kind}>${notice.text}</p>` : null}</div>
    ${creating || !streams.length ? html`<main><${NewStream} onCreate=${create} onCancel=${streams.length ? () => setCreating(false) : null} /></main>`
      : html`<${Stream} key=${info.name} info=${info} place=${place} go=${go} say=${say} refresh=${refresh} />`}`;
}

function Stream({ info, place, go, say, refresh }) {
  const url = `/v1/streams/${info.name}`;
  const { tab, category } = place;
  const [categories, setCategories] = useState([]), [stats, setStats] = useState(null);
  const [edits, setEdits] = useState([]), [questions, setQuestions] = useState([]);
  const [version, setVersion] = useState(0), [progress, setProgress] = useState(null), [live, setLive] = useState(false);
  const [chosen, setChosen] = useState(new Set()), [picked, setPicked] = useState(new Set());
  const [filter, setFilter] = useState(""), [found, setFound] = useState(null), [over, setOver] = useState(false);
  const busy = useRef(false), again = useRef(false);

  // One refresh at a time: while events come thick and fast, the next starts when this has ended.
  const load = useCallback(async () => {
    if (busy.current) { again.current = true; return; }
    busy.current = true;
    try {
      const [c, s, e] = await Promise.all([ask(`${url}/categories`), ask(`${url}/stats`), ask(`${url}/edits`)]);
      setCategories(c.categories); setStats(s); setEdits(e.edits); setVersion((v) => v + 1);
    } catch (error) { if (error.status !== 503) say(error.message, "problem"); }
    await new Promise((done) => setTimeout(done, 700));
    busy.current = false;
    if (again.current) { again.current = false; load(); }
  }, [url]);
  useEffect(() => {
    load();
    const events = new EventSource(`${url}/events`);
    events.onopen = () => setLive(true);
    events.onerror = () => setLive(false);
    for (const kind of ["answered", "edited", "reset", "paused"]) events.addEventListener(kind, load);
    events.addEventListener("progress", (e) => setProgress(JSON.parse(e.data)));
    events.addEventListener("answered", (e) => { if (JSON.parse(e.data).learned >= (info.warmup ?? 0)) setProgress(null); });
    events.addEventListener("born", () => load());
    return () => events.close();
  }, [url]);
  useEffect(() => { if (tab === "questions") ask(`${url}/questions`).then((r) => setQuestions(r.questions)).catch(() => {}); }, [tab, edits.length, url]);
  const brought = useRef(null); // picks of the lasso, which leads to another view
  useEffect(() => { setPicked(brought.current ?? new Set()); brought.current = null; }, [tab, category]);

  const edit = async (said, told) => {
    try {
      setEdits((await ask(`${url}/edits`, said)).edits);
      setChosen(new Set()); setPicked(new Set());
      say(told ?? "done; undo is in the history");
      await load();
    } catch (error) { say(error.message, "problem"); }
  };
  const rename = (id, name) => edit({ op: "rename", category: id, name }, `named ${name}`);
  const mergeChosen = () => {
    const ids = [...chosen].sort((a, b) => count(b) - count(a));
    (async () => { for (const id of ids.slice(1)) await edit({ op: "merge", category: id, into: ids[0] }, `merged into ${nameOf(ids[0])}`); })();
  };
  const by = useMemo(() => new Map(categories.map((c) => [c.id, c])), [categories]);
  const count = (id) => by.get(id)?.count ?? 0, nameOf = (id) => by.get(id)?.name ?? id;
  const toggle = (set, put) => (id) => { const next = new Set(set); next.has(id) ? next.delete(id) : next.add(id); put(next); };
  const send = async (files) => {
    const images = [...files].filter((f) => f.type.startsWith("image/"));
    if (!images.length) return say("these are no images", "problem");
    try {
      const refused = await upload(info.name, images, (done, all) => say(`${done} of ${all} images sent`));
      if (refused.length) say(`${refused.length} refused: ${refused[0].error}`, "problem");
      load();
    } catch (error) { say(error.message, "problem"); }
  };
  const search = async (event) => {
    event.preventDefault();
    const text = new FormData(event.target).get("text").trim();
    if (!text) return setFound(null);
    try {
      const { results } = await ask(`${url}/search`, { text, limit: 120 });
      setFound({ text, rows: results.map((r) => r.image) });
      go(info.name, "images");
    } catch (error) { say(error.message, "problem"); }
  };
  const lasso = async (indexes) => {
    if (!indexes.length) return;
    const { images: rows } = await ask(`${url}/images?${indexes.map((i) => `index=${i}`).join("&")}`);
    setFound({ text: `${rows.length} on the map`, rows });
    brought.current = new Set(rows.map((r) => r.index));
    go(info.name, "images");
  };
  const targets = categories.filter((c) => c.merged_into == null && !c.hidden).sort((a, b) => (a.kind === b.kind ? a.name.localeCompare(b.name) : a.kind === "novel" ? -1 : 1));

  return html`<div class=${`stream ${over ? "over" : ""}`}
      onDragOver=${(e) => { e.preventDefault(); setOver(true); }} onDragLeave=${() => setOver(false)}
      onDrop=${(e) => { e.preventDefault(); setOver(false); send(e.dataTransfer.files); }}>
    <div class="bar">
      <p class="state"><span class=${`dot ${live ? "on" : ""}`} title=${live ? "live" : "connecting"}></span>
        <b>${info.images.toLocaleString()}</b> images${info.paused ? " · paused" : ""}${info.failed ? html` · <span class="problem">${info.failed}</span>` : null}</p>
      ${progress ? html`<p class="warm"><progress value=${progress.done} max=${progress.total}></progress> ${progress.phase}: ${progress.done} of ${progress.total}</p>`
        : !info.warmed_up && info.warmup ? html`<p class="warm"><progress value=${Math.min(info.images, info.warmup)} max=${info.warmup}></progress> warm-up: ${Math.min(info.images, info.warmup)} of ${info.warmup}, answers are provisional</p>` : null}
      <form class="search" role="search" onSubmit=${search}><input name="text" type="search" placeholder="search images by text" aria-label="search images by text" /><button>Search</button></form>
      <label class="button primary">Add images<input class="hidden" type="file" accept="image/*" multiple onChange=${(e) => { send(e.target.files); e.target.value = ""; }} /></label>
      <label class="button camera">Camera<input class="hidden" type="file" accept="image/*" capture="environment" onChange=${(e) => { send(e.target.files); e.target.value = ""; }} /></label>
    </div>
    <nav class="tabs" aria-label="views">${TABS.map((t) => html`<a href=${`#${info.name}/${t}`} aria-current=${t === tab ? "page" : null}>${t}${t === "history" && edits.length ? html` <small>${edits.length}</small>` : null}</a>`)}
      <span class="right">
        <button onClick=${() => ask(url, { paused: !info.paused }, "PATCH").then(refresh)}>${info.paused ? "Resume" : "Pause"}</button>
        <a href=${`${url}/download?format=csv`} download>CSV</a><a href=${`${url}/download?format=parquet`} download>parquet</a><a href=${`${url}/download?format=report`} download>report</a>
      </span></nav>
    <main>${
      tab === "wall" && category == null ? html`
        <label class="filter">Filter <input value=${filter} onInput=${(e) => setFilter(e.target.value)} placeholder="by name" /></label>
        <${Wall} stream=${info.name} categories=${categories} chosen=${chosen} filter=${filter} onChoose=${toggle(chosen, setChosen)} onOpen=${(id) => go(info.name, "wall", id)} onRename=${rename} />
        ${chosen.size ? html`<div class="actions" role="toolbar" aria-label="selected categories"><b>${chosen.size} selected</b>
          <button class="primary" disabled=${chosen.size < 2} onClick=${mergeChosen}>Merge</button>
          <button onClick=${() => { const id = [...chosen][0]; edit({ op: "hide", category: id }, "hidden"); }} disabled=${chosen.size !== 1}>Hide</button>
          <button onClick=${() => setChosen(new Set())}>Clear</button></div>` : null}`
      : tab === "wall" ? html`<${Category} ...${{ info, c: by.get(category), go, rename, edit, picked, setPicked, toggle, version, targets }} />`
      : tab === "images" || tab === "doubtful" ? html`
        ${found && tab === "images" ? html`<p>${found.rows.length} images for <b>${found.text}</b> <button onClick=${() => setFound(null)}>all images</button></p>` : null}
        <${Images} ...${{ info, tab, found: tab === "images" ? found : null, picked, setPicked, toggle, version, total: stats?.images ?? 0 }} />
        <${Picked} ...${{ picked, setPicked, edit, targets }} />`
      : tab === "questions" ? html`<${Questions} stream=${info.name} questions=${questions} categories=${categories} onEdit=${(said) => edit(said)} onOpen=${(id) => go(info.name, "wall", id)} />`
      : tab === "map" ? html`<${StarMap} stream=${info.name} categories=${categories} onLasso=${lasso} version=${Math.floor(info.images / 200)} />`
      : tab === "figures" ? html`<${Figures} stats=${stats} />`
      : html`<${History} edits=${edits} onUndo=${(target) => edit({ op: "undo", target }, "undone")} onRedo=${(target) => edit({ op: "redo", target }, "made again")} />`
    }</main></div>`;
}

function Category({ info, c, go, rename, edit, picked, setPicked, toggle, version, targets }) {
  const [order, setOrder] = useState("typical");
  const load = useCallback(pageOf(info.name, c?.id, order), [info.name, c?.id, order]);
  if (!c) return html`<p class="quiet">No such category.</p>`;
  const others = targets.filter((t) => t.id !== c.id);
  return html`<p><a href=${`#${info.name}/wall`}>all categories</a></p>
    <h2>${c.name} <small>${c.kind}, ${c.count} images</small></h2>
    <div class="actions still" role="toolbar" aria-label=${`what to do with ${c.name}`}>
      ${c.kind === "novel" ? html`
        <form class="inline" onSubmit=${(e) => { e.preventDefault(); const name = new FormData(e.target).get("name").trim(); if (name) rename(c.id, name); }}><input name="name" list="words" placeholder="new name" aria-label="new name" maxlength="200" /><button>Rename</button>
          <datalist id="words">${c.suggested_names.map((w) => html`<option value=${w} />`)}</datalist></form>
        <select aria-label="merge into" onChange=${(e) => { if (e.target.value) { edit({ op: "merge", category: c.id, into: Number(e.target.value) }, "merged"); go(info.name); } }}><option value="">Merge into…</option>${others.map((t) => html`<option value=${t.id}>${t.name}</option>`)}</select>
        <button onClick=${() => edit({ op: "split", category: c.id }, "split in two")}>Split in two</button>` : null}
      <button onClick=${() => { edit({ op: "hide", category: c.id }, "hidden"); go(info.name); }}>Hide</button>
      <label>Order <select value=${order} onChange=${(e) => setOrder(e.target.value)}><option value="typical">typical first</option><option value="doubt">doubtful first</option><option value="newest">newest first</option></select></label>
    </div>
    <${Gallery} stream=${info.name} total=${c.count} load=${load} picked=${picked} onPick=${toggle(picked, setPicked)} version=${version} label=${`images of ${c.name}`} />
    <${Picked} ...${{ picked, setPicked, edit, targets: others, from: c }} />`;
}

function Images({ info, tab, found, picked, setPicked, toggle, version, total }) {
  const order = tab === "doubtful" ? "doubt" : "newest";
  const load = useCallback(found ? async (offset, limit) => found.rows.slice(offset, offset + limit) : pageOf(info.name, null, order), [info.name, order, found]);
  return html`<${Gallery} stream=${info.name} total=${found ? found.rows.length : total} load=${load} picked=${picked} onPick=${toggle(picked, setPicked)} version=${found ? 0 : version} label="images" />`;
}

function Picked({ picked, setPicked, edit, targets, from }) {
  if (!picked.size) return html`<p class="quiet">Pick images to move them${from ? " or to split them off" : ""}.</p>`;
  const images = [...picked];
  return html`<div class="actions" role="toolbar" aria-label="picked images"><b>${picked.size} picked</b>
    ${from ? html`<form class="inline" onSubmit=${(e) => { e.preventDefault(); const name = new FormData(e.target).get("name").trim(); edit({ op: "split", category: from.id, images, ...(name ? { name } : {}) }, "split off"); }}>
      <input name="name" placeholder="name (may be empty)" aria-label="name of the new category" maxlength="200" /><button class="primary">Split off</button></form>` : null}
    <select aria-label="move into" onChange=${(e) => { if (e.target.value) edit({ op: "move", images, into: Number(e.target.value) }, "moved"); e.target.value = ""; }}><option value="">Move into…</option>${targets.map((t) => html`<option value=${t.id}>${t.name}</option>`)}</select>
    <button onClick=${() => setPicked(new Set())}>Clear</button></div>`;
}

render(html`<${App} />`, document.getElementById("app"));
