"use strict";
(() => {
  const map = document.getElementById("map");
  if (!map) return;
  const facts = JSON.parse(document.getElementById("facts").textContent);
  const regions = [...document.querySelectorAll("#regions path")];
  const messages = [...document.querySelectorAll("#messages path")];
  const panel = document.getElementById("panel");
  const slider = document.getElementById("which");
  const whole = map.getAttribute("viewBox").split(" ").map(Number);
  let view = [...whole];
  let timer = 0;
  for (const path of messages) if (path.getAttribute("d").endsWith("h0")) path.classList.add("dot");

  // Pan and zoom: the view box moves, the drawing stays.
  const show = () => map.setAttribute("viewBox", view.map((value) => value.toFixed(1)).join(" "));
  const place = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
  const zoom = (factor, x = view[0] + view[2] / 2, y = view[1] + view[3] / 2) => {
    const width = Math.min(Math.max(view[2] * factor, whole[2] / 200), whole[2] * 8);
    const by = width / view[2];
    view = [x - (x - view[0]) * by, y - (y - view[1]) * by, width, view[3] * by];
    show();
  };
  map.addEventListener("wheel", (event) => {
    event.preventDefault();
    const at = place(event);
    zoom(Math.exp(event.deltaY * 0.0015), at.x, at.y);
  }, { passive: false });
  const fingers = new Map();
  let spread = 0;
  let dragged = false;
  map.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, place(event)); spread = 0; dragged = false; });
  map.addEventListener("pointermove", (event) => {
    const from = fingers.get(event.pointerId);
    if (!from) return;
    if (fingers.size === 1) {
      const to = place(event);
      if (Math.hypot(to.x - from.x, to.y - from.y) < view[2] * 0.004) return;
      dragged = true;
      map.setPointerCapture(event.pointerId);
      view[0] += from.x - to.x;
      view[1] += from.y - to.y;
      show();
      return;
    }
    fingers.set(event.pointerId, place(event));
    const [a, b] = [...fingers.values()];
    const apart = Math.hypot(a.x - b.x, a.y - b.y) / view[2];
    if (spread) zoom(spread / apart, (a.x + b.x) / 2, (a.y + b.y) / 2);
    spread = apart;
  });
  for (const name of ["pointerup", "pointercancel", "pointerleave"]) {
    map.addEventListener(name, (event) => { fingers.delete(event.pointerId); spread = 0; });
  }
  const keys = { "+": () => zoom(0.8), "=": () => zoom(0.8), "-": () => zoom(1.25), "0": () => { view = [...whole]; show(); } };
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  map.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    if (move) { view[0] += move[0] * view[2] * 0.1; view[1] += move[1] * view[3] * 0.1; show(); }
    else if (keys[event.key]) keys[event.key]();
    else if (event.key === "Escape" && slider) choose(-1);
    else return;
    event.preventDefault();
  });
  document.getElementById("in").onclick = keys["+"];
  document.getElementById("out").onclick = keys["-"];
  document.getElementById("all").onclick = keys["0"];

  if (!slider) return;

  // Choose a message: what it matched stands out, the rest steps back. Text is set as text, never as markup.
  const element = (name, text) => { const made = document.createElement(name); made.textContent = text; return made; };
  const plural = (count) => `${count.toLocaleString("en")} ${count === 1 ? "match" : "matches"}`;
  let current = -1;
  function choose(number) {
    for (const path of map.querySelectorAll(".on")) path.classList.remove("on");
    current = number;
    map.classList.toggle("chosen", number >= 0);
    panel.replaceChildren();
    if (number < 0) {
      panel.append(element("p", "Choose a message: click on the map where one is (again for the next one there), or move the slider."));
      return;
    }
    slider.value = number;
    const message = facts.messages[number];
    messages[number].classList.add("on");
    for (const row of message.regions) regions[row].classList.add("on");
    const list = element("dl", "");
    for (const [name, value] of message.attributes) list.append(element("dt", name), element("dd", value));
    panel.append(element("h3", `Message ${message.name}: ${plural(message.matches)}`), list);
    if (message.regions.length < message.matches) {
      panel.append(element("p", `${message.regions.length.toLocaleString("en")} of them are drawn.`));
      panel.lastChild.className = "note";
    }
    const found = element("ul", "");
    for (const row of message.regions) {
      const [key, subscriber] = facts.regions[row];
      const item = element("li", "");
      item.append(element("b", key), " ", element("span", subscriber));
      found.append(item);
    }
    panel.append(found);
  }
  // A click takes the outline under it, else the next message whose area holds the place, else none.
  map.addEventListener("click", (event) => {
    if (dragged) return;
    stop();
    const under = messages.indexOf(event.target);
    const at = place(event);
    const holding = messages.flatMap((path, number) => (path.isPointInFill(at) ? [number] : []));
    choose(under >= 0 ? under : holding.find((number) => number > current) ?? holding[0] ?? -1);
  });
  const last = messages.length - 1;
  const step = (by) => choose(current < 0 ? 0 : (current + by + last + 1) % (last + 1));
  const stop = () => { clearInterval(timer); timer = 0; document.getElementById("play").textContent = "Play"; };
  slider.oninput = () => { stop(); choose(Number(slider.value)); };
  document.getElementById("previous").onclick = () => { stop(); step(-1); };
  document.getElementById("next").onclick = () => { stop(); step(1); };
  document.getElementById("clear").onclick = () => { stop(); choose(-1); };
  document.getElementById("play").onclick = () => {
    if (timer) { stop(); return; }
    timer = setInterval(() => step(1), 450);
    document.getElementById("play").textContent = "Stop";
  };
  choose(-1);
})();
