"""HTML for notebooks: a card with a head, pictures and tables. All text is escaped; colours follow the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from contrada.drawing.svg import COLOURS, DARK_COLOURS, colour_style


class Markup(str):
    """HTML that is ready; every other text is escaped where it is put in."""

    __slots__ = ()


def _variables(colours: Mapping[str, str]) -> str:
    return ";".join(f"--contrada-{kind}:{colour}" for kind, colour in colours.items())


# JupyterLab marks its themes on the body, VS Code by a class; other pages follow the reader's preference. Text has the
# colour of the page.
STYLE = f"""<style>
.contrada{{color:inherit;font-size:13px;line-height:1.45;max-width:100%}}
.contrada p{{margin:.25em 0}}
.contrada .contrada-scroll{{overflow-x:auto}}
.contrada table{{border-collapse:collapse;margin:.4em 0;font-size:inherit;color:inherit}}
.contrada table th,.contrada table td{{text-align:left;vertical-align:top;padding:.25em 1.1em .25em 0;border:0;\
border-bottom:1px solid rgba(128,128,128,.35);white-space:normal;max-width:34em;color:inherit}}
.contrada table tbody tr,.contrada table tbody tr:nth-child(odd){{background:none}}
.contrada table th{{font-weight:600}}
.contrada code{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:.95em;color:inherit;\
background:none;border:0;padding:0;overflow-wrap:anywhere}}
.contrada .contrada-mark{{display:inline-block;border:1.5px solid;border-radius:.8em;padding:0 .6em;font-weight:600;\
white-space:nowrap}}
.contrada .contrada-mark>span{{color:inherit}}
.contrada .contrada-figures{{display:flex;flex-wrap:wrap;gap:.5em 1.6em;align-items:flex-end}}
.contrada figure{{margin:.3em 0;max-width:100%}}
.contrada figcaption{{margin-top:.2em}}
.contrada .contrada-swatch{{display:inline-block;width:1.5em;height:0;border-top:3px solid;margin:0 .4em .25em 0}}
@media (prefers-color-scheme: dark){{.contrada{{{_variables(DARK_COLOURS)}}}}}
[data-jp-theme-light="true"] .contrada,.vscode-light .contrada{{{_variables(COLOURS)}}}
[data-jp-theme-light="false"] .contrada,.vscode-dark .contrada{{{_variables(COLOURS | DARK_COLOURS)}}}
</style>"""


def marked(text: object) -> Markup:
    """Return text as HTML, escaped unless it is Markup.

    >>> marked("<b>"), marked(Markup("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return text if isinstance(text, Markup) else Markup(escape(str(text)))


def joined(*parts: object) -> Markup:
    """Return pieces one after another."""
    return Markup("".join(marked(part) for part in parts))


def element(tag: str, *content: object) -> Markup:
    """Return an element without attributes.

    >>> element("p", "a < b")
    '<p>a &lt; b</p>'
    """
    return Markup(f"<{tag}>{joined(*content)}</{tag}>")


def card(*parts: object) -> str:
    """Return the HTML of a whole answer, with the style sheet."""
    return f'{STYLE}<div class="contrada">{joined(*parts)}</div>'


def badge(text: str, kind: str) -> Markup:
    """Return a word in a frame of the colour of `kind`; the word itself has the colour of the page."""
    return Markup(f'<span class="contrada-mark" style="border-color:{colour_style(kind)}">{escape(text)}</span>')


def swatch(kind: str, text: str) -> Markup:
    """Return an entry of a legend: a line as outlines of this kind have it, and its name."""
    line = f"border-top-color:{colour_style(kind)};border-top-style:{'dashed' if kind == 'subscription' else 'solid'}"
    return Markup(f'<span class="contrada-swatch" style="{line}"></span>{escape(text)}')


def table(heads: Sequence[object], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table, which scrolls by itself where it is too wide."""
    head = element("tr", *(element("th", one) for one in heads))
    body = joined(*(element("tr", *(element("td", one) for one in row)) for row in rows))
    return Markup(f'<div class="contrada-scroll"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>')


def figures(pictures: Sequence[tuple[str, object]]) -> Markup:
    """Return SVG pictures side by side, each above its caption."""
    made = [f"<figure>{picture}<figcaption>{marked(caption)}</figcaption></figure>" for picture, caption in pictures]
    return Markup(f'<div class="contrada-figures">{"".join(made)}</div>')
