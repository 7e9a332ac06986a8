"""No module imports another in a circle, not even for a type checker."""

from __future__ import annotations

import grimp
import networkx


def find_circles(graph: grimp.ImportGraph) -> list[set[str]]:
    imports: networkx.DiGraph[str] = networkx.DiGraph(
        (module, imported)
        for module in graph.modules
        if module != "reconciler"  # the public names, which nothing inside imports from there
        for imported in graph.find_modules_directly_imported_by(module)
    )
    return [circle for circle in networkx.strongly_connected_components(imports) if len(circle) > 1]


def test_no_module_imports_itself_through_others() -> None:
    graph = grimp.build_graph("reconciler", cache_dir=None)
    assert len(graph.modules) > 500
    assert find_circles(graph) == []


def test_a_circle_is_found() -> None:
    graph = grimp.ImportGraph()
    for module, imported in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")):
        graph.add_module(module)
        graph.add_module(imported)
        graph.add_import(importer=module, imported=imported)
    assert find_circles(graph) == [{"a", "b", "c"}]
