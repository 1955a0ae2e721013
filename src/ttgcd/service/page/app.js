// The live page: one stream in sight, everything about it kept up to date by its events.
import { html, render, useCallback, useEffect, useMemo, useRef, useState } from "/page/vendor/preact-htm.js";
import { ask, upload } from "/page/api.js";
import { Category, Images, Picked } from "/page/gallery.js";
import { Wall } from "/page/wall.js";
import { Figures, StarMap } from "/page/figures.js";
import { History, Login, NewStream, Questions, Settings } from "/page/panels.js";

const TABS = ["wall", "images", "doubtful", "questions", "map", "figures", "history", "settings"];
const fromHash = () => {
  const [stream, tab, category] = location.hash.slice(1).split("/");
  return { stream: stream || null, tab: TABS.includes(tab) ? tab : "wall", category: category ? Number(category) : null };
};

function App() {
  const [streams, setStreams] = useState(null), [locked, setLocked] = useState(null);
  const [place, setPlace] = useState(fromHash());
  const [creating, setCreating] = useState(false), [notice, setNotice] = useState(null);
  const say = useCallback((text, kind = "info", action = null) => { setNotice({ text, kind, action }); }, []);
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
    <div role="status" aria-live="polite" class="notices">${notice ? html`<p class=${notice.kind}>${notice.text}${notice.action ? html` <button onClick=${() => { setNotice(null); notice.action(); }}>Undo</button>` : null}</p>` : null}</div>
    ${creating || !streams.length ? html`<main><${NewStream} onCreate=${create} onCancel=${streams.length ? () => setCreating(false) : null} /></main>`
      : html`<${Stream} key=${info.name} info=${info} place=${place} go=${go} say=${say} refresh=${refresh} />`}`;
}

const hasFiles = (event) => [...event.dataTransfer.types].includes("Files");

function Stream({ info, place, go, say, refresh }) {
  const url = `/v1/streams/${info.name}`;
  const { tab, category } = place;
  const [categories, setCategories] = useState([]), [stats, setStats] = useState(null);
  const [edits, setEdits] = useState([]), [questions, setQuestions] = useState([]);
  const [version, setVersion] = useState(0), [progress, setProgress] = useState(null), [live, setLive] = useState(false);
  const [chosen, setChosen] = useState(new Set()), [picked, setPicked] = useState(new Set());
  const [filter, setFilter] = useState(""), [found, setFound] = useState(null), [over, setOver] = useState(false);
  const busy = useRef(false), again = useRef(false), seen = useRef(0);

  // One refresh at a time: while events come thick and fast, the next starts when this has ended.
  const load = useCallback(async () => {
    if (busy.current) { again.current = true; return; }
    busy.current = true;
    try {
      const [c, s, e] = await Promise.all([ask(`${url}/categories`), ask(`${url}/stats`), ask(`${url}/edits`)]);
      seen.current = c.cursor;
      setCategories(c.categories); setStats(s); setEdits(e.edits); setVersion((v) => v + 1);
    } catch (error) { if (error.status !== 503) say(error.message, "problem"); }
    await new Promise((done) => setTimeout(done, 700));
    busy.current = false;
    if (again.current) { again.current = false; load(); }
  }, [url]);
  useEffect(() => {
    const events = new EventSource(`${url}/events`);
    // What happened before the connection stood is not told: look once it does.
    events.onopen = () => { setLive(true); load(); };
    events.onerror = () => setLive(false);
    for (const kind of ["answered", "born", "edited", "named", "reset", "paused"]) events.addEventListener(kind, load);
    events.addEventListener("progress", (e) => setProgress(JSON.parse(e.data)));
    events.addEventListener("answered", (e) => { if (JSON.parse(e.data).learned >= (info.warmup ?? 0)) setProgress(null); });
    events.addEventListener("finished", () => { setProgress(null); load(); refresh(); });
    return () => events.close();
  }, [url]);
  // Of a very long stream the service may show a view that is a little old: look again until it is not.
  useEffect(() => { if (info.cursor > seen.current || info.edits !== edits.length) load(); }, [info]);
  useEffect(() => { if (tab === "questions") ask(`${url}/questions`).then((r) => setQuestions(r.questions)).catch(() => {}); }, [tab, edits.length, url]);
  const brought = useRef(null); // picks of the lasso, which leads to another view
  useEffect(() => { setPicked(brought.current ?? new Set()); brought.current = null; }, [tab, category]);

  const edit = async (said, told) => {
    try {
      const made = (await ask(`${url}/edits`, said)).edits, last = made.at(-1).number;
      setEdits(made); setChosen(new Set()); setPicked(new Set());
      const taken = said.op === "undo" || said.op === "redo";
      say(told ?? "done", "info", taken ? null : () => edit({ op: "undo", target: last }, "undone"));
      await load();
    } catch (error) { say(error.message, "problem"); }
  };
  const rename = (id, name) => edit({ op: "rename", category: id, name }, `named ${name}`);
  const mergeChosen = () => {
    const ids = [...chosen].sort((a, b) => count(b) - count(a));
    (async () => { for (const id of ids.slice(1)) await edit({ op: "merge", category: id, into: ids[0] }, `merged into ${nameOf(ids[0])}`); })();
  };
  const merge = (id, into) => edit({ op: "merge", category: id, into }, `${nameOf(id)} merged into ${nameOf(into)}`);
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
  const tried = (asked, told) => asked.then(() => { if (told) say(told); return refresh(); }).catch((error) => say(error.message, "problem"));
  const pause = () => tried(ask(url, { paused: !info.paused }, "PATCH"), info.paused ? "goes on" : "paused");
  const finish = () => { say("finishing: the last images are learned from, then all answers are looked at again"); return tried(ask(`${url}/finish`, {}), "finished"); };
  const remove = () => tried(ask(url, undefined, "DELETE").then(() => { location.hash = ""; }), `${info.name} deleted`);
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
      onDragOver=${(e) => { if (hasFiles(e)) { e.preventDefault(); setOver(true); } }} onDragLeave=${() => setOver(false)}
      onDrop=${(e) => { if (hasFiles(e)) { e.preventDefault(); setOver(false); send(e.dataTransfer.files); } }}>
    <div class="bar">
      <p class="state"><span class=${`dot ${live ? "on" : ""}`} title=${live ? "live" : "connecting"}></span>
        <b>${info.images.toLocaleString()}</b> images${stats?.images && !info.known ? html` in <span class="novel">${categories.filter((c) => c.count > 0 && c.merged_into == null).length.toLocaleString()} groups</span>` : stats?.images ? html`, ${stats.known.toLocaleString()} known, <span class="novel">${stats.novel.toLocaleString()} novel</span>` : null}${info.paused ? " · paused" : ""}${info.failed ? html` · <span class="problem">${info.failed}</span>` : null}</p>
      ${progress ? html`<p class="warm"><progress value=${progress.done} max=${progress.total}></progress> ${progress.phase}: ${progress.done} of ${progress.total}</p>`
        : !info.warmed_up && info.warmup ? html`<p class="warm"><progress value=${Math.min(info.images, info.warmup)} max=${info.warmup}></progress> warm-up: ${Math.min(info.images, info.warmup)} of ${info.warmup}, answers are provisional</p>` : null}
      <form class="search" role="search" onSubmit=${search}><input name="text" type="search" placeholder="search images by text" aria-label="search images by text" /><button>Search</button></form>
      <label class="button primary">Add images<input class="hidden" type="file" accept="image/*" multiple onChange=${(e) => { send(e.target.files); e.target.value = ""; }} /></label>
      <label class="button camera">Camera<input class="hidden" type="file" accept="image/*" capture="environment" onChange=${(e) => { send(e.target.files); e.target.value = ""; }} /></label>
    </div>
    <nav class="tabs" aria-label="views">${TABS.map((t) => html`<a href=${`#${info.name}/${t}`} aria-current=${t === tab ? "page" : null}>${t}${t === "history" && edits.length ? html` <small>${edits.length}</small>` : null}</a>`)}
    </nav>
    <main>${
      tab === "wall" && category == null ? html`
        <label class="filter">Filter <input value=${filter} onInput=${(e) => setFilter(e.target.value)} placeholder="by name" /></label>
        <${Wall} stream=${info.name} nameless=${!info.known} categories=${categories} chosen=${chosen} filter=${filter} onChoose=${toggle(chosen, setChosen)} onOpen=${(id) => go(info.name, "wall", id)} onRename=${rename} onMerge=${merge} />
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
      : tab === "figures" ? html`<${Figures} stats=${stats} nameless=${!info.known} />`
      : tab === "settings" ? html`<${Settings} ...${{ info, url, pause, finish, remove }} />`
      : html`<${History} edits=${edits} onUndo=${(target) => edit({ op: "undo", target }, "undone")} onRedo=${(target) => edit({ op: "redo", target }, "made again")} />`
    }</main></div>`;
}

render(html`<${App} />`, document.getElementById("app"));
