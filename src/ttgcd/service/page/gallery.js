// Pictures by the thousand: a category's, all, or those that a search or the lasso has found.
import { html, useCallback, useEffect, useRef, useState } from "/page/vendor/preact-htm.js";
import { ask } from "/page/api.js";
import { Picture } from "/page/wall.js";

// Rows of pictures: only those in sight are in the document, and pages of rows are fetched as they
// come into sight, so that a hundred thousand images stay smooth.
const PAGE = 120;
export function Gallery({ stream, total, load, picked, onPick, version, label }) {
  const frame = useRef(), rows = useRef(new Map());
  const [place, setPlace] = useState({ top: 0, height: 600, width: 800 });
  const [, redraw] = useState(0);
  const side = place.width < 500 ? 84 : 112;
  const across = Math.max(1, Math.floor(place.width / side));
  useEffect(() => {
    const measure = () => frame.current && setPlace((p) => ({ ...p, height: frame.current.clientHeight, width: frame.current.clientWidth }));
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  // What was seen stays in sight until newer rows have come.
  const fetched = useRef(new Map());
  useEffect(() => { rows.current = new Map(); fetched.current = new Map(); redraw((n) => n + 1); }, [load]);
  const first = Math.max(0, (Math.floor(place.top / side) - 2) * across);
  const last = Math.min(total, first + (Math.ceil(place.height / side) + 4) * across);
  useEffect(() => {
    let gone = false;
    const wanted = new Set();
    for (let i = first; i < last; i += 1) if (fetched.current.get(Math.floor(i / PAGE)) !== version) wanted.add(Math.floor(i / PAGE));
    for (const page of wanted) {
      load(page * PAGE, PAGE).then((images) => {
        if (gone) return;
        for (let k = 0; k < PAGE; k += 1) {
          if (images[k]) rows.current.set(page * PAGE + k, images[k]); else rows.current.delete(page * PAGE + k);
        }
        fetched.current.set(page, version);
        redraw((n) => n + 1);
      }).catch(() => {});
    }
    return () => { gone = true; };
  }, [first, last, version, load]);
  const cells = [];
  for (let i = first; i < last; i += 1) {
    const row = rows.current.get(i);
    if (!row) continue;
    const on = picked.has(row.index);
    cells.push(html`<button key=${row.index} class=${`cell ${on ? "picked" : ""} ${row.provisional ? "provisional" : ""}`} role="option" aria-selected=${on}
      ref=${(node) => { if (node) { node.style.left = `${(i % across) * side}px`; node.style.top = `${Math.floor(i / across) * side}px`; node.style.width = node.style.height = `${side - 6}px`; } }}
      title=${`${row.id}\n${row.name}, ${Math.round(100 * row.confidence)}% sure${row.provisional ? ", provisional" : ""}`}
      onClick=${() => onPick(row.index)}><${Picture} stream=${stream} index=${row.index} size=${96} label=${row.id} /></button>`);
  }
  return html`<div class="gallery" ref=${frame} tabindex="0" role="listbox" aria-multiselectable="true" aria-label=${label} onScroll=${(e) => { const top = e.currentTarget.scrollTop; setPlace((p) => ({ ...p, top })); }}>
    <div class="sheet" ref=${(node) => { if (node) node.style.height = `${Math.ceil(total / across) * side}px`; }}>${cells}</div>
  </div>`;
}

const pageOf = (stream, category, order) => async (offset, limit) => {
  const query = new URLSearchParams({ offset, limit, order });
  if (category != null) query.set("category", category);
  return (await ask(`/v1/streams/${stream}/images?${query}`)).images;
};

export function Category({ info, c, go, rename, edit, picked, setPicked, toggle, version, targets }) {
  const [order, setOrder] = useState("typical");
  const load = useCallback(pageOf(info.name, c?.id, order), [info.name, c?.id, order]);
  if (!c) return html`<p class="quiet">No such category.</p>`;
  const others = targets.filter((t) => t.id !== c.id);
  return html`<p><a href=${`#${info.name}/wall`}>all categories</a></p>
    <h2>${c.name} <small>${info.known ? `${c.kind}, ` : ""}${c.count} images</small></h2>
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

export function Images({ info, tab, found, picked, setPicked, toggle, version, total }) {
  const order = tab === "doubtful" ? "doubt" : "newest";
  const load = useCallback(found ? async (offset, limit) => found.rows.slice(offset, offset + limit) : pageOf(info.name, null, order), [info.name, order, found]);
  return html`<${Gallery} stream=${info.name} total=${found ? found.rows.length : total} load=${load} picked=${picked} onPick=${toggle(picked, setPicked)} version=${found ? 0 : version} label="images" />`;
}

export function Picked({ picked, setPicked, edit, targets, from }) {
  if (!picked.size) return html`<p class="quiet">Pick images to move them${from ? " or to split them off" : ""}.</p>`;
  const images = [...picked];
  return html`<div class="actions" role="toolbar" aria-label="picked images"><b>${picked.size} picked</b>
    ${from ? html`<form class="inline" onSubmit=${(e) => { e.preventDefault(); const name = new FormData(e.target).get("name").trim(); edit({ op: "split", category: from.id, images, ...(name ? { name } : {}) }, "split off"); }}>
      <input name="name" placeholder="name (may be empty)" aria-label="name of the new category" maxlength="200" /><button class="primary">Split off</button></form>` : null}
    <select aria-label="move into" onChange=${(e) => { if (e.target.value) edit({ op: "move", images, into: Number(e.target.value) }, "moved"); e.target.value = ""; }}><option value="">Move into…</option>${targets.map((t) => html`<option value=${t.id}>${t.name}</option>`)}</select>
    <button onClick=${() => setPicked(new Set())}>Clear</button></div>`;
}
