// -- edits: what the user changes here, replayed over the run; kept by the browser until downloaded
const UNNAMED = /^novel \d+$/;
const STORE = `ttgcd-edits-${data.run}`;
const world = { categories: new Map(), of: [] };
let edits = [], undone = [];

function readStored() {
  try {
    const found = JSON.parse(localStorage.getItem(STORE));
    return found && found.format === "ttgcd.edits/1" && Array.isArray(found.edits) ? found.edits : [];
  } catch { return []; } // no storage, or not ours
}

function store() {
  try {
    if (edits.length) localStorage.setItem(STORE, JSON.stringify(asFile()));
    else localStorage.removeItem(STORE);
  } catch { /* private window: the edits live as long as the page */ }
}

const asFile = () => ({ format: "ttgcd.edits/1", edits });

// The world after all edits, from the run's own answers.
function replay() {
  world.of = rows.category.slice();
  world.categories = new Map(data.categories.map((c) => [c.id, { ...c, into: c.merged ?? null, rows: [] }]));
  const rowOf = edits.some((e) => e.op === "move") ? new Map(rows.id.map((id, row) => [id, row])) : null;
  for (const edit of edits) {
    const own = world.categories.get(edit.category), into = world.categories.get(edit.into);
    if (edit.op === "rename" && own) own.name = String(edit.name);
    else if (edit.op === "hide" && own) own.hidden = true;
    else if (edit.op === "merge" && own && into && own !== into) {
      world.of.forEach((c, row) => { if (c === own.id) world.of[row] = into.id; });
      into.count += own.count;
      own.count = 0;
      own.into = into.id;
    } else if (edit.op === "move" && into) {
      for (const id of edit.images) {
        const row = rowOf.get(id), from = world.categories.get(world.of[row]);
        if (!from || from === into) continue;
        from.count -= 1;
        into.count += 1;
        world.of[row] = into.id;
      }
    }
  }
  world.of.forEach((c, row) => world.categories.get(c)?.rows.push(row));
  for (const c of world.categories.values()) {
    c.guess = c.novel && UNNAMED.test(c.name) && c.suggested.length > 0;
    c.title = c.guess ? `${c.suggested[0]}?` : c.name;
  }
}

const category = (id) => world.categories.get(id);
const listed = () => [...world.categories.values()].filter((c) => c.into === null && !c.hidden);
const bySize = (list) => list.sort((a, b) => b.count - a.count || a.id - b.id);

function addEdit(edit, said) {
  edits.push(edit);
  undone = [];
  changed(said);
}

function changed(said) {
  store();
  replay();
  drawAll();
  $("said").textContent = said;
}

const describe = (edit) => ({
  rename: () => `${category(edit.category).id}: name “${edit.name}”`,
  merge: () => `${edit.category} merged into ${edit.into}`,
  move: () => `${images(edit.images.length)} moved to ${edit.into}`,
  hide: () => `${edit.category} hidden`,
}[edit.op] ?? (() => edit.op))();

function undo() {
  const last = edits.pop();
  if (!last) return;
  undone.push(last);
  changed(`Undone: ${describe(last)}`);
}

function redo() {
  const next = undone.pop();
  if (!next) return;
  edits.push(next);
  changed(`Done again: ${describe(next)}`);
}

function download() {
  const blob = new Blob([JSON.stringify(asFile(), null, 1), "\n"], { type: "application/json" });
  const link = make("a", { href: URL.createObjectURL(blob), download: `${data.out}-edits.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  $("said").textContent = "Downloaded.";
}

function drawEditBar() {
  $("edits").hidden = edits.length === 0 && undone.length === 0;
  $("edit-count").textContent = `${edits.length} ${edits.length === 1 ? "edit" : "edits"}`;
  $("undo").disabled = edits.length === 0;
  $("redo").disabled = undone.length === 0;
  $("download").disabled = edits.length === 0;
  $("edit-log").replaceChildren(...edits.map((e) => make("li", { text: describe(e) })));
  const hidden = [...world.categories.values()].filter((c) => c.hidden && c.into === null && edits.some((e) => e.op === "hide" && e.category === c.id));
  $("hidden-note").replaceChildren(...hidden.map((c) => make("button", {
    type: "button", class: "chip", text: `Show ${c.title} again`,
    on: { click: () => { edits = edits.filter((e) => !(e.op === "hide" && e.category === c.id)); changed("Shown again."); } },
  })));
}

function startEdits() {
  edits = readStored();
  $("undo").addEventListener("click", undo);
  $("redo").addEventListener("click", redo);
  $("download").addEventListener("click", download);
  $("edit-command").textContent = `ttgcd edit ${data.out} apply ${data.out}-edits.json`;
}

// -- asking: one small dialog for a name or a category ----------------------------------------
function ask(question, { value = "", choices = null, hint = "" } = {}) {
  const dialog = $("ask"), field = $("ask-field");
  $("ask-label").textContent = question;
  $("ask-hint").textContent = hint;
  $("ask-choices").replaceChildren(...(choices ?? []).map((text) => make("option", { value: text })));
  field.value = value;
  dialog.returnValue = "";
  dialog.showModal();
  field.select();
  return new Promise((answer) => {
    dialog.addEventListener("close", () => answer(dialog.returnValue === "ok" ? field.value.trim() : ""), { once: true });
  });
}

const choiceOf = (c) => `${c.title} #${c.id}`;

// A category by "title #id", by its title alone, or by its number.
async function askCategory(question, except) {
  const all = bySize(listed().filter((c) => c.id !== except));
  const given = await ask(question, { choices: all.map(choiceOf), hint: "Begin to type a name; choose from the list." });
  if (!given) return null;
  const id = /#(\d+)$/.exec(given)?.[1] ?? /^\d+$/.exec(given)?.[0];
  const found = id !== undefined ? all.find((c) => c.id === Number(id)) : all.find((c) => [c.title, c.name].some((t) => t.toLowerCase() === given.toLowerCase()));
  if (!found) $("said").textContent = `No category “${given}”: nothing was changed.`;
  return found ?? null;
}

async function renameCategory(id) {
  const c = category(id);
  const hint = c.suggested.length ? `Suggested: ${c.suggested.join(", ")}` : "";
  const name = await ask("Name of this category", { value: c.guess ? c.suggested[0] : c.name, choices: c.suggested, hint });
  if (name && name !== c.name) addEdit({ op: "rename", category: id, name }, `Named “${name}”.`);
}

async function mergeCategory(id) {
  const into = await askCategory(`Merge ${category(id).title} into`, id);
  if (!into) return false;
  addEdit({ op: "merge", category: id, into: into.id }, `Merged into ${into.title}.`);
  return true;
}

function hideCategory(id) {
  addEdit({ op: "hide", category: id }, `${category(id).title} is hidden; bring it back at the foot of the page.`);
}

async function moveRows(chosen) {
  const into = await askCategory(`Move ${images(chosen.length)} to`, null);
  if (!into) return false;
  addEdit({ op: "move", images: chosen.map((row) => rows.id[row]), into: into.id }, `${images(chosen.length)} moved to ${into.title}.`);
  return true;
}
