// -- what the page knows, and small tools that every part uses --------------------------------
const data = JSON.parse(document.getElementById("data").textContent);
const rows = data.rows, total = rows.id.length;
const seedRows = new Set(rows.seed), missing = new Set(data.missing);
const $ = (id) => document.getElementById(id);

// Text always goes in as text: nothing that came from a file name is ever parsed as markup.
function make(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === "text") node.textContent = value;
    else if (key === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const number = (v) => v.toLocaleString("en", { maximumFractionDigits: Math.abs(v) < 10 ? 3 : 1 });
const percent = (v) => (v > 0 && v < 0.001 ? "under 0.1%" : `${(100 * v).toFixed(v > 0 && v < 0.1 ? 1 : 0)}%`);
const images = (n) => `${number(n)} ${data.noun[n === 1 ? 0 : 1]}`;
const baseName = (id) => id.slice(id.lastIndexOf("/") + 1) || id;
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Where the original of a row lies; null when samples are not files of their own.
function originalOf(row) {
  if (data.originals === null) return null;
  const encoded = rows.id[row].split("/").map(encodeURIComponent).join("/");
  if (encoded.startsWith("/")) return `file://${encoded}`;
  if (/^[A-Za-z]%3A\//.test(encoded)) return `file:///${encoded.replace("%3A", ":")}`;
  return data.originals + encoded;
}
