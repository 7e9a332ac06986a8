"""Turns decisions into API calls and orders them by what each waits for."""
