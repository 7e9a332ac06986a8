from tests.end_to_end.conftest import no_waiting, on_sandbox, project

__all__ = ["no_waiting", "on_sandbox", "project"]
