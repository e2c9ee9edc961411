"""What a page of HTML holds, as a browser's parser would see it."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}


@dataclass
class Page:
    """Elements of a page in order, each with its attributes, and its text outside of style sheets."""

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def parse(markup: str) -> Page:
    """Parse a page, and insist that every element that is opened is closed in its turn."""
    page, open_tags = Page(), []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            page.elements.append((tag, {key: value or "" for key, value in attrs}))
            if tag not in VOID:
                open_tags.append(tag)

        def handle_startendtag(self, tag, attrs):
            page.elements.append((tag, {key: value or "" for key, value in attrs}))

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

        def handle_data(self, data):
            (page.styles if open_tags[-1:] == ["style"] else page.text).append(data)

    reader = Reader()
    reader.feed(markup)
    reader.close()
    assert open_tags == []
    return page
