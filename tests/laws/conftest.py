"""`--hypothesis-profile=sketch` reports a broken law as it was found, without the minutes that shrinking it takes."""

from hypothesis import Phase, settings

settings.register_profile("sketch", phases=[Phase.explicit, Phase.reuse, Phase.generate])
