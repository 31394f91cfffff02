"""For the receiver of webhooks: checks that a request comes from the API, by the specification of Standard Webhooks."""
from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from typing import Any, Mapping, Sequence

from .errors import RivuletError


def verify_webhook(
    secret: str | Sequence[str], headers: Mapping[str, str], body: str | bytes, *, tolerance: float = 300, now: float | None = None
) -> dict[str, Any]:
    """Returns the event of a delivery, or raises `unauthorized`. During a rotation, pass both secrets.

    `body` is the request as it was received, because other spaces give another signature. `tolerance` is in seconds: an older
    request may be a copy that is sent again.
    """
    given = {name.lower(): value for name, value in headers.items()}
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    delivery, sent_at, signatures = (given.get(name, "") for name in names)
    if not (delivery and sent_at and signatures):
        raise RivuletError("unauthorized", f"The request has no signature: {', '.join(names)} are needed")
    if not sent_at.isascii() or not sent_at.isdigit() or abs((time.time() if now is None else now) - int(sent_at)) > tolerance:
        raise RivuletError("unauthorized", f"The request was signed more than {tolerance:g} s ago, or by another clock")
    payload = body.encode() if isinstance(body, str) else bytes(body)
    signed = f"{delivery}.{sent_at}.".encode() + payload
    found = [signature[3:].encode() for signature in signatures.split(" ") if signature.startswith("v1,")]
    for key in [secret] if isinstance(secret, str) else secret:
        expected = base64.b64encode(hmac.new(_key_of(key), signed, hashlib.sha256).digest())
        if any(hmac.compare_digest(expected, signature) for signature in found):
            event: dict[str, Any] = json.loads(payload)
            return event
    raise RivuletError("unauthorized", "No signature of the request is by this secret")


def _key_of(secret: str) -> bytes:
    try:
        if secret.startswith("whsec_"):
            return base64.b64decode(secret[6:], validate=True)
    except binascii.Error:
        pass
    raise RivuletError("bad_call", "A secret of a webhook is whsec_ and base64")
