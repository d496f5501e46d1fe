"""What a timeline does in a browser: it fits the screen, zooms, moves, says what a bar is where one taps, and is
searched.
"""

from __future__ import annotations

from typing import Final

#: All charts of a page show one part of the axis, `shown`: where it begins and how long it is, both in widths as drawn.
#: A pointer holds the place of the axis that it was put down on: one moves the axis, two give it another length as
#: well. The wheel zooms with Ctrl alone, as without it the page scrolls. Names at the left stay, and letters keep their
#: size, as bars and lines are placed anew, and the axis is marked as finely as the part that is shown needs it. A
#: notebook has the script once for each chart: those that listen are left alone.
SCRIPT: Final = """
(function () {
  var full = WIDTH, left = LABELS, right = MARGIN, near = 16, shown = [0, full], charts = [], down = {}, tip = null, moved = 0;
  function floor(a, b) { return a / b - (a % b < 0n ? 1n : 0n); }
  function text(axis, wall) {
    if (!axis.clock) { return String(wall); }
    var iso = new Date(Number(floor(wall, 1000n))).toISOString().replace('T', ' ');
    return iso.slice(0, -1) + String(wall - floor(wall, 1000n) * 1000n).padStart(3, '0');
  }
  function rounds(level, low, high) {  // the round instants of clocks in a period
    var found = [], step = BigInt(level[0]), months = level[1], at;
    if (!months) {
      for (at = -floor(-low, step) * step; at <= high; at += step) { found.push(at); }
      return found;
    }
    at = new Date(Number(floor(low, 1000n)));
    at = new Date(at.setUTCFullYear(at.getUTCFullYear(), Math.floor(at.getUTCMonth() / months) * months, 1)).setUTCHours(0, 0, 0, 0);
    if (months > 12) { at = new Date(at).setUTCFullYear(Math.floor(new Date(at).getUTCFullYear() / (months / 12)) * (months / 12)); }
    for (; BigInt(at) * 1000n <= high; at = new Date(at).setUTCMonth(new Date(at).getUTCMonth() + months)) {
      if (BigInt(at) * 1000n >= low) { found.push(BigInt(at) * 1000n); }
    }
    return found;
  }
  function mark(svg) {
    var axis = JSON.parse(svg.dataset.axis), inner = svg.querySelector('svg'), height = svg.getAttribute('height');
    var parts = axis.offsets.map(function (part) { return part.map(BigInt); }), first = parts[0][0];
    var span = Number(parts[parts.length - 1][1] - first), ticks = span * shown[1] / full;
    var begin = first + BigInt(Math.floor(span * shown[0] / full)), end = begin + BigInt(Math.ceil(ticks));
    var level = axis.levels.filter(function (one) { return one[0] * axis.marks >= ticks; }).pop() || axis.levels[0];
    var dated = !axis.clock || level[2] < 11, made = document.createDocumentFragment();
    function add(name, values, parent) {
      var one = document.createElementNS(svg.namespaceURI, name);
      Object.keys(values).forEach(function (key) { one.setAttribute(key, values[key]); });
      return parent.appendChild(one);
    }
    parts.forEach(function (part) {
      var low = part[0] > begin ? part[0] : begin, high = part[1] < end ? part[1] : end;
      rounds(level, low + part[2], high + part[2]).forEach(function (wall) {
        var whole = text(axis, wall), x = Number(wall - part[2] - first) / span * full;
        add('line', {'class': 'mark', 'data-x': x, y1: 20, y2: height, stroke: '#dddddd'}, made);
        var label = add('text', {'class': 'mark', 'data-x': x, y: 14, fill: '#666666'}, made);
        label.textContent = !axis.clock ? whole : dated ? whole.slice(level[2], level[3]) : whole.slice(0, level[4]);
        add('title', {}, label).textContent = axis.clock ? whole.slice(0, level[4]) : whole;
        dated = true;
      });
    });
    inner.querySelectorAll('.mark').forEach(function (one) { one.remove(); });
    inner.prepend(made);
  }
  function draw() {
    charts.forEach(function (svg) {
      mark(svg);
      var wide = Math.max(300, svg.parentElement.clientWidth || full + left + right), room = wide - left - right;
      var scale = room / shown[1], edge = 0;
      svg.setAttribute('viewBox', '0 0 ' + wide + ' ' + svg.getAttribute('height'));
      svg.setAttribute('width', wide);
      svg.querySelector('rect').setAttribute('width', wide);
      svg.querySelector('svg').setAttribute('width', room);
      svg.setAttribute('font-size', wide < 600 ? 14 : 12);
      var lines = [...svg.querySelectorAll('line.match')], seen = lines.filter(function (one) {
        return one.dataset.x >= shown[0] && one.dataset.x <= shown[0] + shown[1];
      }).length;
      lines.forEach(function (one) { one.setAttribute('stroke-opacity', Math.max(0.1, Math.min(1, SOLID / Math.max(1, seen)))); });
      svg.querySelectorAll('[data-x]').forEach(function (one) {
        var x = (one.dataset.x - shown[0]) * scale;
        if (one.tagName === 'line') { one.setAttribute('x1', x); one.setAttribute('x2', x); }
        else { one.setAttribute('x', x); }
        if (one.dataset.w) { one.setAttribute('width', Math.max(one.dataset.w * scale, 1)); }
        if (one.tagName === 'text') {
          one.setAttribute('x', x += 2);
          var end = x + one.getComputedTextLength(), fits = x >= edge && end <= room;
          one.setAttribute('visibility', fits ? 'visible' : 'hidden');
          if (fits) { edge = end + 8; }
        }
      });
    });
  }
  function show(x, w) {
    w = Math.max(full / 5000, Math.min(full, w));
    shown = [Math.max(0, Math.min(full - w, x)), w];
    draw();
  }
  function part(svg, event) {
    var box = svg.getBoundingClientRect(), wide = Number(svg.getAttribute('width'));
    return ((event.clientX - box.left) * wide / box.width - left) / (wide - left - right);
  }
  function at(svg, event) { return shown[0] + part(svg, event) * shown[1]; }
  function hide() { if (tip) { tip.remove(); tip = null; } }
  function say(svg, event) {
    var best = null, least = near;
    svg.querySelectorAll('rect[data-x], line[data-x]').forEach(function (one) {
      var box = one.getBoundingClientRect();
      var far = Math.max(box.left - event.clientX, event.clientX - box.right, box.top - event.clientY, event.clientY - box.bottom, 0);
      if (far < least && one.querySelector('title')) { best = one; least = far; }
    });
    if (!best) { return; }
    tip = document.createElement('div');
    tip.className = 'timeline-tip';
    tip.textContent = best.querySelector('title').textContent;
    tip.style.cssText = 'position: absolute; z-index: 9; white-space: pre-line; overflow-wrap: anywhere; max-width: 280px; ' +
      'padding: 6px 8px; background: #222; color: #fff; font: 14px sans-serif; border-radius: 4px';
    document.body.appendChild(tip);
    var most = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(8, Math.min(event.clientX - 20, most)) + window.scrollX + 'px';
    tip.style.top = event.clientY + window.scrollY + 16 + 'px';
  }
  document.querySelectorAll('svg.timeline').forEach(function (svg) {
    if (svg.listens) { return; }
    svg.listens = true;
    charts.push(svg);
    svg.style.touchAction = 'pan-y';
    svg.style.userSelect = 'none';
    svg.addEventListener('wheel', function (event) {
      if (!event.ctrlKey && !event.metaKey) { return; }
      event.preventDefault();
      var x = at(svg, event), by = event.deltaY > 0 ? 1.25 : 0.8;
      show(x - (x - shown[0]) * by, shown[1] * by);
    });
    svg.addEventListener('dblclick', function () { show(0, full); });
    svg.querySelectorAll('[data-from]').forEach(function (name) {
      var from = Number(name.dataset.from), long = name.dataset.to - from;
      name.style.cursor = 'pointer';
      name.addEventListener('click', function () { show(from - 0.1 * long, 1.2 * long); });
    });
    svg.addEventListener('pointerdown', function (event) {
      if (event.button > 0) { return; }
      moved = Object.keys(down).length ? near : 0;
      down[event.pointerId] = { svg: svg, x: event.clientX, y: event.clientY, at: at(svg, event), part: part(svg, event) };
    });
    svg.addEventListener('pointerup', function (event) {
      if (event.pointerType !== 'mouse' && down[event.pointerId] && moved < 6) { say(svg, event); }
    });
  });
  window.addEventListener('pointerdown', hide, true);
  window.addEventListener('pointermove', function (event) {
    var one = down[event.pointerId];
    if (!one) { return; }
    moved = Math.max(moved, Math.abs(event.clientX - one.x), Math.abs(event.clientY - one.y));
    one.part = part(one.svg, event);
    var held = Object.keys(down).map(function (id) { return down[id]; });
    if (held.length === 1) { show(one.at - one.part * shown[1], shown[1]); return; }
    var apart = held[1].part - held[0].part, w = (held[1].at - held[0].at) / apart;
    if (Math.abs(apart) > 0.01 && w > 0) { show(held[0].at - held[0].part * w, w); }
  });
  ['pointerup', 'pointercancel'].forEach(function (name) {
    window.addEventListener(name, function (event) {
      delete down[event.pointerId];
      Object.keys(down).forEach(function (id) { down[id].at = shown[0] + down[id].part * shown[1]; });
    });
  });
  window.addEventListener('resize', draw);
  draw();
  document.querySelectorAll('input.timelines').forEach(function (field) {
    field.addEventListener('input', function () {
      var text = field.value.toLowerCase(), found = 0;
      field.parentElement.querySelectorAll('[data-partition]').forEach(function (one) {
        var fits = one.dataset.partition.toLowerCase().indexOf(text) >= 0;
        one.style.display = fits ? '' : 'none';
        found += fits;
      });
      field.nextElementSibling.textContent = found ? '' : 'none that is drawn has this in its name';
    });
  });
})();
"""
