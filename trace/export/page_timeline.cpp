#include "trace/export/page_text.hpp"

namespace troupe {

const char* const kPageTimeline = R"HTML(</script>
<script>
"use strict";
const page = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const css = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const view = $("view"), pen = view.getContext("2d"), tip = $("tip");
const ROW = 22, HEAD = 26, LEFT = 236;
const HUES = [214, 150, 28, 280, 340, 185, 55, 245];  // by module, and by run
let data, length, from, until, hovered, rows, slices, byLane, arrows, workOf, out, colours;
// Shows the timeline of one run.
function use(run) {
  data = run; length = run.length; from = 0; until = length; hovered = -1; rows = [];
  slices = run.slices.map((s, i) => ({ i, lane: s[0], begin: s[1], end: s[1] + s[2],
    name: run.names[s[3]], kind: run.kinds[s[4]], message: s[5], stage: s[6], without: s[7],
    step: s[8] }));
  byLane = run.lanes.map(() => []);
  for (const s of slices) byLane[s.lane].push(s);
  arrows = run.arrows.map(a => ({ lane: a[0], sent: a[1], slice: a[2], cause: a[3] }));
  workOf = new Map();  // message -> slice of the work that its handler ran
  for (const s of slices) if (s.kind !== "message" && s.message >= 0) workOf.set(s.message, s);
  out = new Map();  // message -> arrows that its handler sent
  arrows.forEach((a, m) => { if (a.cause >= 0) {
    if (!out.has(a.cause)) out.set(a.cause, []);
    out.get(a.cause).push(m); } });
  colours = {};
}
// A hue for each module, a shade for each kind of work.
const SHADES = { F: [66, 56], B: [70, 35], W: [50, 73], reduce: [18, 52], update: [18, 36],
  exchange: [18, 66], offload: [18, 76], restore: [18, 80], checkpoint: [18, 24] };
const shade = (hue, kind) => { const [sat, light] = SHADES[kind] || [0, 60];
  return `hsl(${hue} ${sat}% ${light}%)`; };
const moduleOf = s => s.stage < 0 ? 0 : data.stages[s.stage][1];
function colourOf(s) {
  const key = s.kind === "message" ? "message" : s.kind + moduleOf(s);
  return colours[key] || (colours[key] = s.kind === "message" ? css("message") :
    shade(HUES[moduleOf(s) % HUES.length], s.kind));
}
// The label of a slice is the longest of these that fits.
function labelsOf(s) {
  if (s.kind === "message" || s.stage < 0) return [s.name];
  const text = s.name.replace(/^([FBW]) /, "$1"), module = data.modules[moduleOf(s)];
  const several = data.modules.length > 1;
  return [data.stages[s.stage][0] + " " + text].concat(
    several ? [module.name + " " + text, module.short + " " + text] : [], [text]);
}

const time = ns => ns >= 1e9 ? (ns / 1e9).toFixed(3) + " s" : ns >= 1e6 ?
  (ns / 1e6).toFixed(3) + " ms" : (ns / 1e3).toFixed(1) + " \u00b5s";
function layOut() {
  const all = $("actors").checked;
  rows = [];
  let group = "", lanes = data.lanes.map((lane, l) => [lane, l]);
  if (!all) lanes = lanes.filter(([lane]) => lane.kind === "work")
    .sort((a, b) => a[0].rank - b[0].rank || a[1] - b[1]);
  const processes = new Set(lanes.map(([lane]) => lane.path[0]));
  for (const [lane, l] of lanes) {
    if (processes.size > 1 && lane.path[0] !== group) {
      group = lane.path[0]; rows.push({ group });
    }
    rows.push({ lane: l, name: lane.label || lane.path.slice(1).join(" \u203a ") || lane.path[0] });
  }
  const counted = data.counters.filter(c => all || c.unit === "bytes");
  if (counted.length) rows.push({ group: "counters" });
  for (const counter of counted) rows.push({ counter, name: counter.path.join(" \u203a ") });
  const width = view.parentElement.clientWidth, height = HEAD + rows.length * ROW + 4;
  const dots = window.devicePixelRatio || 1;
  view.style.height = height + "px";
  view.width = width * dots; view.height = height * dots;
  pen.setTransform(dots, 0, 0, dots, 0, 0);
  draw();
}
const width = () => view.parentElement.clientWidth;
const x = ns => LEFT + (ns - from) / (until - from) * (width() - LEFT);
const ns = px => from + (px - LEFT) / (width() - LEFT) * (until - from);
function firstAfter(lane, at) {  // the first slice that ends after `at`
  let low = 0, high = lane.length;
  while (low < high) { const mid = (low + high) >> 1; if (lane[mid].end <= at) low = mid + 1;
    else high = mid; }
  return low;
}
function draw() {
  const w = width(), h = HEAD + rows.length * ROW + 4;
  pen.clearRect(0, 0, w, h);
  pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
  pen.textBaseline = "middle";
  drawSteps(w, h);
  rows.forEach((row, r) => drawRow(row, HEAD + r * ROW, w));
  pen.strokeStyle = css("line");
  pen.beginPath(); pen.moveTo(LEFT - .5, 0); pen.lineTo(LEFT - .5, h); pen.stroke();
  if (hovered >= 0) drawArrows(slices[hovered]);
}
function drawSteps(w, h) {
  const wanted = (until - from) / Math.max(2, (w - LEFT) / 110);
  let unit = Math.pow(10, Math.floor(Math.log10(wanted)));
  for (const f of [1, 2, 5, 10]) if (unit * f >= wanted) { unit *= f; break; }
  pen.save(); pen.beginPath(); pen.rect(LEFT, 0, w - LEFT, h); pen.clip();
  for (const [number, begin, end] of data.steps) {
    if (end < from || begin > until) continue;
    pen.fillStyle = number % 2 ? css("row") : css("card");
    pen.fillRect(x(begin), HEAD, x(end) - x(begin), h - HEAD);
    pen.fillStyle = css("ink"); pen.font = "600 12px system-ui, 'DejaVu Sans', sans-serif";
    if (x(end) - x(begin) > 50) pen.fillText("step " + number, Math.max(x(begin), LEFT) + 5, 8);
  }
  pen.font = "10.5px system-ui, 'DejaVu Sans', sans-serif";
  for (let at = Math.ceil(from / unit) * unit; at < until; at += unit) {
    pen.fillStyle = css("line"); pen.fillRect(x(at), HEAD - 5, 1, h - HEAD + 5);
    pen.fillStyle = css("soft"); pen.fillText((at / 1e6).toFixed(unit < 1e4 ? 3 : unit < 1e6 ? 2 :
      0) + " ms", x(at) + 3, 19);
  }
  pen.restore();
}
function drawRow(row, y, w) {
  pen.font = (row.group ? "600 " : "") + "12px system-ui, 'DejaVu Sans', sans-serif";
  pen.fillStyle = row.group ? css("ink") : css("soft");
  pen.save(); pen.beginPath(); pen.rect(0, y, LEFT - 6, ROW); pen.clip();
  pen.fillText(row.group || row.name, 10, y + ROW / 2); pen.restore();
  if (row.group) return;
  pen.save(); pen.beginPath(); pen.rect(LEFT, y, w - LEFT, ROW); pen.clip();
  pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  if (row.counter) { drawCounter(row.counter, y, w); pen.restore(); return; }
  const lane = byLane[row.lane];
  let painted = -1;
  for (let i = firstAfter(lane, from); i < lane.length && lane[i].begin < until; ++i) {
    const s = lane[i], left = x(s.begin), right = Math.max(x(s.end), left + 1);
    if (right < painted + .5 && s.i !== hovered) continue;
    painted = right;
    pen.fillStyle = colourOf(s);
    pen.fillRect(left, y + 2, right - left - (right - left > 4 ? 1 : 0), ROW - 4);
    if (s.i === hovered) { pen.strokeStyle = css("ink"); pen.lineWidth = 2;
      pen.strokeRect(left, y + 2, right - left, ROW - 4); pen.lineWidth = 1; }
    if (s.without > 0 && right - left > 2) {
      pen.fillStyle = css("nocore");
      pen.fillRect(left, y + ROW - 5, (right - left) * s.without / (s.end - s.begin), 3);
    }
    const shown = Math.max(left, LEFT), fits = Math.min(right, w) - shown;
    if (fits < 10) continue;
    const text = labelsOf(s).find(t => pen.measureText(t).width + 5 < fits);
    if (text) {
      pen.fillStyle = s.kind === "W" ? "#1b2330" : "#fff";
      pen.fillText(text, shown + 3, y + ROW / 2 - .5);
    }
  }
  pen.restore();
}
const amount = (value, unit) => unit === "bytes" ? (value / 1048576).toFixed(1) + " MiB" :
  value + " " + unit;
function drawCounter(counter, y, w) {
  let most = 1, least = Infinity;
  for (const p of counter.points) { most = Math.max(most, p[1]); least = Math.min(least, p[1]); }
  pen.fillStyle = css("bar");
  counter.points.forEach(([at, value], i) => {
    const next = i + 1 < counter.points.length ? counter.points[i + 1][0] : length;
    if (next < from || at > until) return;
    const high = (ROW - 5) * value / most;
    pen.fillRect(x(at), y + ROW - 2 - high, Math.max(x(next) - x(at), 1), high);
  });
  pen.fillStyle = css("soft"); pen.fillText(amount(least, counter.unit) + " to " +
    amount(most, counter.unit), LEFT + 6, y + ROW / 2 + .5);
}
const rowOf = lane => rows.findIndex(row => row.lane === lane);
const middle = r => HEAD + r * ROW + ROW / 2;
function arrow(x1, y1, x2, y2) {
  const bend = Math.max(14, Math.abs(x2 - x1) / 2);
  pen.beginPath(); pen.moveTo(x1, y1);
  pen.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2 - 4, y2); pen.stroke();
  pen.beginPath(); pen.moveTo(x2, y2); pen.lineTo(x2 - 7, y2 - 4); pen.lineTo(x2 - 7, y2 + 4);
  pen.fill();
}
// The work whose end led to this message, through any handlers between.
function origin(m) {
  for (let at = arrows[m] ? arrows[m].cause : -1; at >= 0; at = arrows[at].cause) {
    if (workOf.has(at)) return workOf.get(at);
  }
  return null;
}
function drawArrows(s) {
  pen.save(); pen.beginPath(); pen.rect(LEFT, HEAD, width() - LEFT, rows.length * ROW); pen.clip();
  pen.strokeStyle = pen.fillStyle = css("arrow"); pen.lineWidth = 1.6;
  const one = (lane1, at1, lane2, at2) => {
    const r1 = rowOf(lane1), r2 = rowOf(lane2);
    if (r1 >= 0 && r2 >= 0) arrow(x(at1), middle(r1), x(at2), middle(r2));
  };
  if (s.kind !== "message") {
    const before = s.message >= 0 ? origin(s.message) : null;
    if (before) one(before.lane, before.end, s.lane, s.begin);
    for (const other of slices) {
      if (other.kind === "message" || other.message < 0 || other.i === s.i) continue;
      if (other.begin < from || other.begin > until) continue;
      if (origin(other.message) === s) one(s.lane, s.end, other.lane, other.begin);
    }
  } else {
    const a = arrows[s.message];
    one(a.lane, a.sent, s.lane, s.begin);
    for (const m of out.get(s.message) || []) {
      const to = slices[arrows[m].slice];
      one(arrows[m].lane, arrows[m].sent, to.lane, to.begin);
    }
  }
  pen.restore();
}
function place(event) {
  const box = view.getBoundingClientRect();
  const px = event.clientX - box.left, py = event.clientY - box.top;
  return { px, row: px < LEFT || py < HEAD ? undefined : rows[Math.floor((py - HEAD) / ROW)] };
}
function counted(event) {  // the value of the counter under the mouse
  const { px, row } = place(event);
  if (!row || !row.counter) return "";
  const past = row.counter.points.filter(p => p[0] <= ns(px));
  return past.length ? row.name + "\n" + amount(past[past.length - 1][1], row.counter.unit) : "";
}
function at(event) {
  const { px, row } = place(event);
  if (!row || row.group || row.counter) return -1;
  const lane = byLane[row.lane], near = 2 * (until - from) / (width() - LEFT);
  const i = firstAfter(lane, ns(px) - near);
  return i < lane.length && lane[i].begin <= ns(px) + near ? lane[i].i : -1;
}
function describe(s) {
  const where = data.lanes[s.lane].path.join(" \u203a ");
  const of = s.kind === "message" || s.stage < 0 ? "" : data.stages[s.stage][0] + " ";
  let text = of + s.name + (s.step > 0 ? ", step " + s.step : "") + "\n" + where + "\n" +
    time(s.end - s.begin) + ", from " + time(s.begin);
  if (s.without > 0) text += "\n" + time(s.without) + " of it without a core";
  if (s.kind === "message") {
    text += "\nfrom " + data.lanes[arrows[s.message].lane].path.join(" \u203a ") +
      "\nin transit and in the mailbox " + time(s.begin - arrows[s.message].sent);
  } else if (s.message >= 0 && origin(s.message)) {
    const before = origin(s.message);
    text += "\nafter " + before.name + " on " + data.lanes[before.lane].path.join(" \u203a ") +
      ", " + time(Math.max(0, s.begin - before.end)) + " earlier";
  }
  return text;
}
let drag = null;
view.addEventListener("mousedown", e => drag = { x: e.clientX, from, until });
window.addEventListener("mouseup", () => drag = null);
window.addEventListener("mousemove", e => {
  if (!drag) return;
  const by = (drag.x - e.clientX) / (width() - LEFT) * (drag.until - drag.from);
  show(drag.from + by, drag.until + by);
});
view.addEventListener("mousemove", e => {
  if (drag) return;
  const now = at(e);
  if (now !== hovered) { hovered = now; draw(); }
  const text = now >= 0 ? describe(slices[now]) : counted(e);
  tip.style.display = text ? "block" : "none";
  if (!text) return;
  tip.textContent = text;
  tip.style.left = Math.min(e.clientX + 14, window.innerWidth - 440) + "px";
  tip.style.top = Math.min(e.clientY + 16, window.innerHeight - 110) + "px";
});
view.addEventListener("mouseleave", () => { tip.style.display = "none"; hovered = -1; draw(); });
view.addEventListener("wheel", e => {
  if (e.shiftKey) return;
  e.preventDefault();
  const middle = ns(e.clientX - view.getBoundingClientRect().left);
  const by = Math.exp(Math.max(-60, Math.min(60, e.deltaY)) / 150);
  show(middle - (middle - from) * by, middle + (until - middle) * by);
}, { passive: false });
view.addEventListener("dblclick", () => show(0, length));
function show(a, b) {
  const span = Math.max(200, Math.min(b - a, length));
  from = Math.max(0, Math.min(a, length - span)); until = from + span;
  draw();
}
)HTML";

}  // namespace troupe
