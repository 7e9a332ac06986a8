"""The context of a run: links to the commit, the review and the run at the code host."""

from __future__ import annotations

from reconciler.operations.run_context import read_run_context
from reconciler.rendering.run_context import Link


def test_variables_of_gitlab_set_the_links() -> None:
    site = "https://gitlab.example.com/octo/infra"
    context = read_run_context(
        {
            "GITLAB_CI": "true",
            "CI_PROJECT_URL": site,
            "CI_MERGE_REQUEST_IID": "7",
            "CI_PIPELINE_ID": "31",
            "CI_PIPELINE_URL": f"{site}/-/pipelines/31",
            "GITLAB_USER_LOGIN": "mara",
        },
        commit="abc",
    )
    assert (context.author, context.review, context.run, context.commit) == (
        "mara",
        Link("!7", f"{site}/-/merge_requests/7"),
        Link("pipeline 31", f"{site}/-/pipelines/31"),
        Link("abc", f"{site}/-/commit/abc"),
    )
