// The wall of categories, and a category's gallery.
import { html, useEffect, useRef, useState } from "/page/vendor/preact-htm.js";
import { ask, picture } from "/page/api.js";

export const Picture = ({ stream, index, size = 96, label = "" }) =>
  html`<img loading="lazy" decoding="async" src=${picture(stream, index, size)} alt=${label} width=${size} height=${size} />`;

export function Wall({ stream, categories, chosen, onChoose, onOpen, onRename, filter }) {
  const shown = categories.filter((c) => !c.hidden && c.merged_into == null && (c.count > 0 || filter)
    && (!filter || c.name.toLowerCase().includes(filter.toLowerCase())));
  const sorted = (kind) => shown.filter((c) => c.kind === kind && c.count > 0).sort((a, b) => b.count - a.count || a.id - b.id);
  const novel = sorted("novel"), known = sorted("known");
  const part = (title, list, note) => html`
    <section aria-label=${title}>
      <h2>${title} <small>${list.length}</small></h2>
      ${list.length ? html`<ul class="wall">${list.map((c) => html`<${Card} key=${c.id} ...${{ stream, c, chosen, onChoose, onOpen, onRename }} />`)}</ul>`
        : html`<p class="quiet">${note}</p>`}
    </section>`;
  return html`${part("Novel", novel, "No novel category yet: they appear when the warm-up is over.")}${part("Known", known, "No image yet.")}`;
}

function Card({ stream, c, chosen, onChoose, onOpen, onRename }) {
  const [naming, setNaming] = useState(false);
  const picked = chosen.has(c.id);
  return html`<li class=${`card ${c.kind} ${picked ? "picked" : ""}`} data-category=${c.id}>
    <button class="pictures" onClick=${() => onOpen(c.id)} aria-label=${`open ${c.name}, ${c.count} images`}>
      ${c.exemplars.slice(0, 4).map((i) => html`<${Picture} key=${i} stream=${stream} index=${i} />`)}
    </button>
    <div class="line">
      ${naming ? html`<${NameBox} c=${c} onDone=${(name) => { setNaming(false); if (name) onRename(c.id, name); }} />`
        : html`<button class="name" disabled=${c.kind === "known"} title=${c.kind === "known" ? c.name : "rename"} onClick=${() => setNaming(true)}>${c.name}</button>`}
      <span class="count">${c.count}</span>
      ${c.kind === "novel" ? html`<input type="checkbox" checked=${picked} onChange=${() => onChoose(c.id)} aria-label=${`select ${c.name}`} />` : null}
    </div>
    ${c.kind === "novel" && !c.named && c.suggested_names.length ? html`<div class="suggested">${c.suggested_names.slice(0, 3).map(
      (word) => html`<button class="chip" onClick=${() => onRename(c.id, word)} title=${`name it ${word}`}>${word}?</button>`)}</div>` : null}
  </li>`;
}

function NameBox({ c, onDone }) {
  const box = useRef();
  useEffect(() => box.current.select(), []);
  const key = (event) => {
    if (event.key === "Enter") onDone(event.target.value.trim());
    if (event.key === "Escape") onDone(null);
  };
  return html`<input class="naming" ref=${box} value=${c.name} maxlength="200" aria-label="new name" onKeyDown=${key} onBlur=${() => onDone(null)} />`;
}

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
  useEffect(() => { rows.current = new Map(); redraw((n) => n + 1); }, [version, load]);
  const first = Math.max(0, (Math.floor(place.top / side) - 2) * across);
  const last = Math.min(total, first + (Math.ceil(place.height / side) + 4) * across);
  useEffect(() => {
    let gone = false;
    const wanted = new Set();
    for (let i = first; i < last; i += 1) if (!rows.current.has(i)) wanted.add(Math.floor(i / PAGE));
    for (const page of wanted) {
      load(page * PAGE, PAGE).then((images) => {
        if (gone) return;
        images.forEach((row, k) => rows.current.set(page * PAGE + k, row));
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

export const pageOf = (stream, category, order) => async (offset, limit) => {
  const query = new URLSearchParams({ offset, limit, order });
  if (category != null) query.set("category", category);
  return (await ask(`/v1/streams/${stream}/images?${query}`)).images;
};
