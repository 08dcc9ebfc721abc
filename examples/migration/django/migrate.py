"""Sessions of Django: MIGRATE_COOKIES=sessionid. In urls.py: path("migrate", migrate). Needs PyJWT with cryptography."""

import base64
import hashlib
import os

import jwt
from django.http import HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

SESSION_URL = os.environ.get("SESSION_URL", "http://127.0.0.1:8080")
ISSUER = os.environ.get("ISSUER", SESSION_URL)
MIGRATE_URL = os.environ.get("MIGRATE_URL", "http://127.0.0.1:3000/migrate")

KEYS = jwt.PyJWKClient(f"{SESSION_URL}/.well-known/jwks.json")


def is_from_session_service(request):
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    try:
        key = KEYS.get_signing_key_from_jwt(token).key
        claims = jwt.decode(
            token, key, algorithms=["ES256", "EdDSA", "RS256"], issuer=ISSUER, audience=MIGRATE_URL
        )
        is_migration = jwt.get_unverified_header(token).get("typ") == "migration+jwt"
    except jwt.PyJWTError:
        return False
    digest = hashlib.sha256(request.headers.get("Cookie", "").encode("latin-1")).digest()
    return is_migration and claims.get("cookie_hash") == base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@csrf_exempt
@require_POST
def migrate(request):
    if not is_from_session_service(request):
        return HttpResponse(status=401)
    user = request.user
    if not user.is_authenticated:
        return HttpResponse(status=204)
    found = {"subject": str(user.pk), "claims": {"staff": user.is_staff}, "old_session_id": request.session.session_key}
    return JsonResponse(found)
