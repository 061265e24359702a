#include "trace/export/page_text.hpp"

namespace troupe {

const char* const kPageCharts =
    R"HTML(// Curves: [title, key of the series, key of the held-out series]
const CURVES = [["loss (nats per token); dots: held out", "loss", "held_out_loss"],
  ["gradient norm, before clipping", "gradient_norm"], ["learning rate", "learning_rate"],
  ["samples per second", "samples_per_second"], ["tokens per second", "tokens_per_second"]];
const FONT = "11px system-ui, 'DejaVu Sans', sans-serif";
const runColour = r => `hsl(${HUES[r % HUES.length]} 66% 50%)`;
const curves = [];  // curves with points, and their canvases
const digits = v => Math.abs(v) >= 1e5 || (v !== 0 && Math.abs(v) < 1e-3) ? v.toExponential(1) :
  +v.toPrecision(3) + "";
function curve(c) {
  const canvas = c.canvas, w = canvas.parentElement.clientWidth, h = 210;
  const dots = window.devicePixelRatio || 1, p = canvas.getContext("2d");
  canvas.style.height = h + "px"; canvas.width = w * dots; canvas.height = h * dots;
  p.setTransform(dots, 0, 0, dots, 0, 0); p.font = FONT;
  const log = $("log").checked, seen = c.lines.concat(c.held).flat()
    .filter(([, v]) => !log || v > 0);
  if (!seen.length) { p.fillStyle = css("soft"); p.fillText("no value above 0", 8, 20); return; }
  const scale = v => log ? Math.log10(v) : v;
  let low = Infinity, high = -Infinity, first = Infinity, last = -Infinity;
  for (const [step, v] of seen) {
    low = Math.min(low, scale(v)); high = Math.max(high, scale(v));
    first = Math.min(first, step); last = Math.max(last, step);
  }
  if (high - low < 1e-12) { high += Math.abs(high) * .05 + 1e-9; low -= Math.abs(low) * .05; }
  last = Math.max(last, first + 1);
  c.x = step => 50 + (step - first) / (last - first) * (w - 62);
  const y = v => 10 + (high - scale(v)) / (high - low) * (h - 40);
  for (let i = 0; i <= 4; ++i) {
    const at = low + (high - low) * i / 4, v = log ? Math.pow(10, at) : at;
    p.fillStyle = css("line"); p.fillRect(50, y(v), w - 62, 1);
    p.fillStyle = css("soft"); p.fillText(digits(v), 2, y(v) + 4);
  }
  p.fillText("step " + first, 50, h - 6); p.textAlign = "right"; p.fillText(last, w - 12, h - 6);
  p.textAlign = "left";
  c.lines.forEach((points, r) => {
    const drawn = points.filter(([, v]) => !log || v > 0);
    p.strokeStyle = p.fillStyle = runColour(r); p.lineWidth = 1.6; p.beginPath();
    drawn.forEach(([s, v], i) => i ? p.lineTo(c.x(s), y(v)) : p.moveTo(c.x(s), y(v)));
    p.stroke();
    if (drawn.length < 2) for (const [s, v] of drawn) dot(p, c.x(s), y(v), runColour(r));
  });
  c.held.forEach((points, r) => {
    for (const [s, v] of points) if (!log || v > 0) dot(p, c.x(s), y(v), runColour(r));
  });
}
function dot(p, x, y, colour) {
  p.beginPath(); p.arc(x, y, 4, 0, 7); p.fillStyle = colour; p.fill();
  p.strokeStyle = css("card"); p.lineWidth = 1.5; p.stroke();
}
function hoverCurve(c, e) {
  if (!c.x) return;
  const px = e.clientX - c.canvas.getBoundingClientRect().left;
  const all = c.lines.concat(c.held).flat();
  const step = all.reduce((best, [s]) =>
    Math.abs(c.x(s) - px) < Math.abs(c.x(best) - px) ? s : best, all[0][0]);
  const lines = ["step " + step];
  page.runs.forEach((run, r) => {
    const name = page.runs.length > 1 ? run.name + ": " : "";
    const at = c.lines[r].find(([s]) => s === step);
    const held = c.held[r] ? c.held[r].find(([s]) => s === step) : null;
    if (at) lines.push(name + digits(at[1]));
    if (held) lines.push(name + "held out " + digits(held[1]));
  });
  tip.textContent = lines.join("\n"); tip.style.display = "block";
  tip.style.left = Math.min(e.clientX + 14, window.innerWidth - 300) + "px";
  tip.style.top = Math.min(e.clientY + 16, window.innerHeight - 80) + "px";
}
function makeCurves() {
  for (const [title, key, held] of CURVES) {
    const c = { lines: page.runs.map(run => run.series[key] || []),
      held: held ? page.runs.map(run => run.series[held] || []) : [] };
    if (!c.lines.concat(c.held).some(points => points.length)) continue;
    const box = add($("charts"), "div");
    add(box, "div", title, "soft");
    c.canvas = add(box, "canvas");
    c.canvas.addEventListener("mousemove", e => hoverCurve(c, e));
    c.canvas.addEventListener("mouseleave", () => tip.style.display = "none");
    curves.push(c);
  }
  if (!curves.length) add($("charts"), "span", "metrics.jsonl has no values", "soft");
  if (page.runs.length > 1) page.runs.forEach((run, r) => swatch($("runs"), runColour(r), run.name));
  compare();
}
// The runs side by side: a row for each fact.
function compare() {
  const keys = [...new Set(page.runs.flatMap(run => Object.keys(run.facts)))];
  if (!keys.length) return;
  const head = $("compared").insertRow();
  add(head, "th", "");
  for (const run of page.runs) add(head, "th", run.name);
  for (const key of keys) {
    const tr = $("compared").insertRow(), values = page.runs.map(run => run.facts[key] || "");
    add(tr, "td", key, "soft");
    for (const value of values) {
      add(tr, "td", value).style.fontWeight = new Set(values).size > 1 ? 600 : 400;
    }
  }
}
function showRun(r) {
  const run = page.runs[r];
  $("timeline").style.display = $("times").style.display = run.timeline ? "" : "none";
  if (!run.timeline) { $("subtitle").textContent = run.without_timeline; return; }
  use(run.timeline); facts(); legend(); table(); layOut();
}
$("actors").addEventListener("change", () => layOut());
$("all").addEventListener("click", () => show(0, length));
$("log").addEventListener("change", () => curves.forEach(curve));
$("run").addEventListener("change", e => showRun(+e.target.value));
window.addEventListener("resize", () => { if (data) layOut(); curves.forEach(curve); });
document.title = page.runs.map(run => run.name).join(", ") + " \u2013 Troupe";
$("title").textContent = page.runs.map(run => run.name).join(", ");
if (page.report) document.body.className = "report";
page.runs.forEach((run, r) => { add($("run"), "option", run.name).value = r; });
$("run").style.display = page.runs.length > 1 ? "" : "none";
makeCurves();
showRun(0);
curves.forEach(curve);
// For tests: the drawn rows and slices, and mouse actions.
if (data) {
  window.troupe = { rows: () => rows.length, slices: slices.length, arrows: arrows.length,
    hover: i => { hovered = i; draw(); return describe(slices[i]); }, show, labelsOf };
  document.body.dataset.ready = slices.length + " " + arrows.length + " " + rows.length;
}
document.body.dataset.curves = curves.length;
if (data && location.hash === "#hover") window.troupe.hover(slices.findIndex(s =>
  s.kind !== "message" && s.message >= 0 && origin(s.message) && s.begin > length / 3));
</script>
</html>
)HTML";

}  // namespace troupe
