#include "trace/export/page_text.hpp"

namespace troupe {

const char* const kPageBeforeData = R"HTML(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Troupe</title>
<style>
:root { --bg: #f6f7f9; --card: #fff; --ink: #1b2330; --soft: #667085; --line: #e4e7ec;
  --row: #f9fafb; --message: #a9b4c4; --arrow: #d2452f; --bar: #b9cff2; --nocore: #e5482d; }
@media (prefers-color-scheme: dark) { :root { --bg: #12161d; --card: #1a2029; --ink: #e6eaf0;
  --soft: #93a0b3; --line: #2a3341; --row: #1e2530; --message: #4d5a6d; --bar: #31598a; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 20px 24px 32px; background: var(--bg); color: var(--ink);
  font: 14px/1.45 system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
  display: flex; flex-direction: column; }
h1 { font-size: 20px; margin: 0 0 2px; } h2 { font-size: 15px; margin: 0 0 10px; }
.soft { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 14px 16px; margin-top: 16px; }
.facts { display: flex; gap: 12px; flex-wrap: wrap; margin-top: 14px; }
.fact { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 8px 16px; } .fact b { display: block; font-size: 18px; font-weight: 600; }
.bar { display: flex; gap: 6px 14px; align-items: center; flex-wrap: wrap; margin-bottom: 8px; }
.key { display: inline-flex; align-items: center; gap: 5px; }
.key i { width: 12px; height: 12px; border-radius: 3px; display: inline-block; }
button, select { font: inherit; color: inherit; background: var(--row);
  border: 1px solid var(--line); border-radius: 6px; padding: 2px 10px; cursor: pointer; }
canvas { display: block; width: 100%; } #view { cursor: grab; } #view:active { cursor: grabbing; }
#scroll { max-height: 62vh; overflow-y: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; } th { text-align: left; font-weight: 600; }
th, td { padding: 5px 10px; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.share { display: inline-block; width: 46px; height: 9px; margin-right: 8px; border-radius: 2px;
  background: var(--line); } .share i { display: block; height: 9px; border-radius: 2px;
  background: var(--bar); }
#tip { position: fixed; pointer-events: none; background: var(--ink); color: var(--card);
  padding: 7px 10px; border-radius: 6px; font-size: 12.5px; max-width: 420px; display: none;
  white-space: pre-line; z-index: 5; box-shadow: 0 4px 14px #0004; }
#charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); gap: 16px; }
.report #curves { order: -1; }
</style>
<body>
<div style="order: -2"><h1 id="title"></h1>
<div class="soft" id="subtitle"></div>
<div class="facts" id="facts"></div></div>
<div class="card" id="timeline">
  <div class="bar"><h2 style="margin:0">Timeline by rank</h2><select id="run"></select>
    <span id="keys" class="bar" style="margin:0"></span><span style="flex:1"></span>
    <label><input type="checkbox" id="actors"> all actors</label>
    <button id="all">whole stretch</button>
    <span class="soft">wheel: zoom &middot; drag: move &middot; hover: what, and from whom</span>
  </div>
  <div id="scroll"><canvas id="view"></canvas></div>
</div>
<div class="card" id="times"><h2>Time of each stage</h2><table id="bubble"></table>
</div>
<div class="card" id="curves">
  <div class="bar"><h2 style="margin:0">Training</h2><span id="runs" class="bar"
    style="margin:0"></span><span style="flex:1"></span>
    <label><input type="checkbox" id="log"> logarithmic axes</label></div>
  <div id="charts"></div>
  <table id="compared" style="margin-top:14px"></table>
</div>
<div id="tip"></div>
<script type="application/json" id="data">)HTML";

}  // namespace troupe
