// The theme puts wide tables into boxes that scroll sideways. A box that is no link or button takes the keyboard's focus
// only if it says so.
addEventListener("load", () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) {
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", "table");
  }
});
