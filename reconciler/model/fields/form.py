"""Forms: classes whose annotated fields define how a map of a manifest, a settings file or a response is read.

A form has the interface of a pydantic model. A value that is plainly valid, like most, is read by `readers`. Any other
is judged by pydantic, which words every error; it is imported when the first value is in doubt. Importing it and making
its models would take a quarter of the CPU of a small plan.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Self,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import UNSET, Struct

from reconciler.model.fields.readers import InDoubt, Reader, reader_of

if TYPE_CHECKING:
    from pydantic import ValidationError


class FormField(Struct, frozen=True):
    """A field as it is written: its type without `Annotated`, the annotations, and the default.

    written  the whole annotation
    """

    annotation: Any
    metadata: tuple[Any, ...]
    default: Any
    written: Any

    def is_required(self) -> bool:
        return self.default is UNSET


@dataclass_transform(kw_only_default=True, frozen_default=True)
class _FormType(type):
    @property
    def model_fields(cls) -> Mapping[str, FormField]:
        """The fields by name, those of base classes first."""
        return _find_fields(cls)


class Form(metaclass=_FormType):
    """A class whose fields are read from a map. By default: no unknown keys, no conversion, no values in errors."""

    __slots__ = ("__dict__", "model_fields_set")

    model_config: ClassVar[Mapping[str, Any]] = {
        "extra": "forbid",
        "frozen": True,
        "strict": True,
        "hide_input_in_errors": True,
        "defer_build": True,
    }
    if TYPE_CHECKING:

        @property
        def model_fields_set(self) -> frozenset[str]:
            """The names of the fields that were written."""

    def __init__(self, **values: Any) -> None:
        read = type(self).model_validate(values)
        self.__setstate__((vars(read), read.model_fields_set))

    @classmethod
    def model_validate(cls, value: Any) -> Self:
        """The value as an instance. Raises pydantic's ValidationError."""
        try:
            return cls.model_read(value)
        except (ValueError, AssertionError):  # in doubt, or what rules raise
            from reconciler.model.fields import judge

            return judge.judge(cls, value)  # type: ignore[no-any-return]

    @classmethod
    def model_try(cls, value: Any) -> Self | ValidationError:
        """As `model_validate`, but returns the error."""
        try:
            return cls.model_validate(value)
        except ValueError as error:
            return error  # type: ignore[return-value]  # pydantic raises no other

    @classmethod
    def model_read(cls, value: Any) -> Self:
        """The value as an instance if it is plainly valid. Raises InDoubt, or ValueError as rules may."""
        if value.__class__ is cls:
            return value
        if value.__class__ is not dict:
            raise InDoubt
        values, written = {}, 0
        for name, (read, default) in _readers_of(cls).items():
            if name in value:
                values[name] = read(value[name])
                written += 1
            elif default is UNSET:
                raise InDoubt
            else:
                values[name] = _copy(default)
        if written != len(value):
            raise InDoubt
        return cls.model_assemble(values, value.keys())

    @classmethod
    def model_assemble(cls, values: Mapping[str, Any], written: Collection[str]) -> Self:
        """An instance of values that were read; `written`: the names of those that are no defaults."""
        made = cls.__new__(cls)
        made.__setstate__((values, written))
        return made

    @classmethod
    def model_construct(cls) -> Self:
        """An instance of the defaults, without the required fields."""
        optional = {name: field for name, field in cls.model_fields.items() if not field.is_required()}
        return cls.model_assemble({name: _copy(field.default) for name, field in optional.items()}, ())

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """The same with other values, which are not checked."""
        return self.model_assemble({**vars(self), **update}, {*self.model_fields_set, *update})

    def model_dump(
        self, *, exclude: Collection[str] = (), exclude_none: bool = False, exclude_defaults: bool = False
    ) -> dict[str, Any]:
        """The fields as plain maps."""
        options = {"exclude_none": exclude_none, "exclude_defaults": exclude_defaults}
        fields = type(self).model_fields
        return {
            name: _dump(value, options)
            for name, value in self
            if name not in exclude
            and not (exclude_none and value is None)
            and not (exclude_defaults and name in fields and value == fields[name].default)
        }

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(vars(self).items())

    def __setattr__(self, name: str, value: Any) -> None:
        from reconciler.model.fields import judge

        judge.refuse_change(type(self).__name__, name)

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __setstate__(self, state: tuple[Mapping[str, Any], Collection[str]]) -> None:
        """Fills the instance; of copies too."""
        values, written = state
        vars(self).update(values)
        object.__setattr__(self, "model_fields_set", frozenset(written))

    def __getstate__(self) -> tuple[Mapping[str, Any], Collection[str]]:
        return dict(vars(self)), self.model_fields_set

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self)})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from reconciler.model.fields import judge

        return handler(judge.model_of(cls))


@cache
def _find_fields(form: type) -> Mapping[str, FormField]:
    found: dict[str, FormField] = {}
    for base in reversed(form.__mro__):
        written = getattr(base, "__annotations__", {}) if issubclass(base, Form) and base is not Form else {}
        if any(isinstance(annotation, str) for annotation in written.values()):
            hints = get_type_hints(base, include_extras=True)
            written = {name: hints[name] for name in written}
        for name, annotation in written.items():
            if not name.startswith("_") and ClassVar not in (annotation, get_origin(annotation)):
                found[name] = _make_field(annotation, vars(base).get(name, UNSET))
    return found


def _make_field(written: Any, default: Any) -> FormField:
    annotation, *metadata = get_args(written) if get_origin(written) is Annotated else (written,)
    return FormField(annotation, tuple(metadata), default, written)


@cache
def _readers_of(form: type[Form]) -> Mapping[str, tuple[Reader, Any]]:
    """The reader and the default of each field."""
    return {name: (reader_of(field.written), field.default) for name, field in form.model_fields.items()}


def _copy(default: Any) -> Any:
    """A default that the instance shares with no other."""
    return default.copy() if default.__class__ in _COPIED else default


_COPIED: Final = (list, dict)


def _dump(value: Any, options: Mapping[str, bool]) -> Any:
    if isinstance(value, Form):
        return value.model_dump(**options)  # type: ignore[arg-type]
    if value.__class__ is list:
        return [_dump(item, options) for item in value]
    if value.__class__ is dict:
        return {key: _dump(item, options) for key, item in value.items()}
    return value
