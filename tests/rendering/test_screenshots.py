"""The pictures of the documentation show what the program prints today."""

from __future__ import annotations

import pytest

from tests.rendering import screenshots


@pytest.mark.parametrize("name", screenshots.PICTURES)
def test_a_picture_of_the_documentation_shows_the_words_of_today(name: str) -> None:
    picture = (screenshots.FOLDER / name).read_bytes()
    render, _ = screenshots.PICTURES[name]
    assert screenshots.read_mark(picture) == screenshots.digest_text(render()), (
        f"docs/images/{name} shows another text; run `python -m tests.rendering.screenshots`"
    )
    assert len(picture) <= screenshots.LARGEST


def test_the_digest_of_a_picture_depends_on_its_words_only() -> None:
    digests = [screenshots.digest_text(page) for page in ("<p>a  b</p>", "<style>x</style><b>a</b>\nb", "<p>a c</p>")]
    assert digests[0] == digests[1] != digests[2]
