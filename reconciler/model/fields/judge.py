"""The judge of forms: pydantic, with a model for each form. `form` imports it once a value is in doubt: it is large."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NoReturn

from pydantic import BaseModel, ValidationError, create_model

FormClass = Any  # a subclass of `Form`, whose module imports this one


def judge(form: FormClass, value: Any) -> Any:
    """The value as an instance of a form. Raises pydantic's ValidationError."""
    return _adopt(model_of(form).model_validate(_release(value)))


@cache
def model_of(form: FormClass) -> type[BaseModel]:
    """The model of a form: the same name, fields, defaults and settings. Forms inside refer to theirs by
    `__get_pydantic_core_schema__`."""
    fields: dict[str, Any] = {
        name: (field.written, ... if field.is_required() else _judge_default(field.default))
        for name, field in form.model_fields.items()
    }
    settings: Any = dict(form.model_config)
    model: type[BaseModel] = create_model(
        form.__name__, __config__=settings, __doc__=form.__doc__, __module__=form.__module__, **fields
    )
    _FORMS[model] = form
    return model


def _judge_default(default: Any) -> Any:
    """A default with a model in place of a form, so that a schema can have it."""
    form: FormClass = type(default)
    return model_of(form).model_validate(_release(default)) if hasattr(form, "model_assemble") else default


_FORMS: Final[dict[type[BaseModel], FormClass]] = {}


def _adopt(value: Any) -> Any:
    """The value with forms in place of their models."""
    if isinstance(value, BaseModel):
        values = {name: _adopt(item) for name, item in value}
        return _FORMS[type(value)].model_assemble(values, value.model_fields_set)
    if value.__class__ is list:
        return [_adopt(item) for item in value]
    if value.__class__ is dict:
        return {key: _adopt(item) for key, item in value.items()}
    return value


def _release(value: Any) -> Any:
    """The value with maps in place of forms, as far as they can be inside a form that is constructed in the source."""
    if hasattr(value, "model_assemble"):
        return {name: _release(item) for name, item in value if name in value.model_fields_set}
    if value.__class__ is list:
        return [_release(item) for item in value]
    if value.__class__ is dict:
        return {key: _release(item) for key, item in value.items()}
    return value


def refuse_change(title: str, name: str) -> NoReturn:
    """Raises the error for an attempt to change a form."""
    detail: Any = {"type": "frozen_instance", "loc": (name,), "input": None}
    raise ValidationError.from_exception_data(title, [detail], hide_input=True)
