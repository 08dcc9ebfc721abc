import com.nimbusds.jose.JOSEException;
import com.nimbusds.jose.JOSEObjectType;
import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.crypto.ECDSAVerifier;
import com.nimbusds.jose.jwk.Curve;
import com.nimbusds.jose.jwk.ECKey;
import com.nimbusds.jose.jwk.JWKSet;
import com.nimbusds.jose.util.Base64URL;
import com.nimbusds.jose.util.JSONObjectUtils;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.SignedJWT;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** Verifies access tokens by ES256, and follows the revocation feed. Times are in milliseconds. */
public final class SessionVerifier {
  private static final String RPC = "/auth.admin.v1.SessionAdminService/WatchRevocations";
  private static final long MAX_STALENESS = 5000, MAX_SILENCE = 3000, MAX_UNREAD = 3_600_000;
  private static final long TOLERANCE = 60_000;

  /** A change of a live session: its access tokens whose `sv` is below the version are stale. */
  private record Change(long minVersion, long expires) {
    Change with(Change other) {
      return new Change(Math.max(minVersion, other.minVersion), Math.max(expires, other.expires));
    }
  }

  private final HttpClient http =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(3)).build();
  private final String adminUrl, adminToken, issuer, audience;
  private final Map<String, Long> ended = new ConcurrentHashMap<>();
  private final Map<String, Change> changed = new ConcurrentHashMap<>();
  private final Set<String> revokedKeys = ConcurrentHashMap.newKeySet();
  private final Map<String, Long> provenUntil = new ConcurrentHashMap<>();
  private volatile JWKSet keys = new JWKSet();
  private volatile boolean areKeysReadable;
  private volatile long keysReadAt = Long.MIN_VALUE / 2, keysTriedAt = keysReadAt, knownAt = Long.MIN_VALUE / 2, arrivedAt;
  private volatile long revokedUntil = Long.MIN_VALUE;
  private volatile String cursor = "";

  public SessionVerifier(String adminUrl, String adminToken, String issuer, String audience) {
    this.adminUrl = adminUrl;
    this.adminToken = adminToken;
    this.issuer = issuer;
    this.audience = audience;
    start(this::readKeys, 10_000);
    start(this::followFeed, 500);
  }

  /** Returns null for an accepted token, or the reason. `unavailable` is 503, everything else 401; the challenge names only `stale`. */
  public String verify(String token) {
    return verify(token, false);
  }

  /**
   * The same for `Authorization: DPoP …`, whose token is bound to a key (RFC 9449 section 7).
   *
   * @param url where clients send the request, from the configuration, without its query
   * @param proof the header `DPoP`, several joined with commas; null if there is none
   */
  public String verifyBound(String token, String method, String url, String proof) {
    String reason = verify(token, true);
    if (reason != null) return reason;
    if (proof == null || proof.isEmpty()) return "proof_absent";
    if (proof.contains(",")) return "proof_ambiguous";
    if (proof.length() > 8192) return "proof_malformed";
    try {
      SignedJWT jwt = SignedJWT.parse(proof);
      var header = jwt.getHeader();
      if (header.getCriticalParams() != null || !header.isBase64URLEncodePayload()) return "proof_malformed";
      if (header.getType() == null || !"dpop+jwt".equals(header.getType().getType())) return "proof_wrong_type";
      if (!JWSAlgorithm.ES256.equals(header.getAlgorithm())) return "proof_wrong_algorithm";
      if (!(header.getJWK() instanceof ECKey key) || key.isPrivate() || !Curve.P_256.equals(key.getCurve())) return "proof_bad_key";
      JWTClaimsSet claims = jwt.getJWTClaimsSet();
      String id = claims.getJWTID(), htu = claims.getStringClaim("htu");
      if (id == null || id.isEmpty() || id.length() > 256 || htu == null || claims.getIssueTime() == null) return "proof_malformed";
      if (!method.equals(claims.getStringClaim("htm"))) return "proof_wrong_method";
      if (!url.equals(htu.split("[?#]", 2)[0])) return "proof_wrong_url";
      long wall = System.currentTimeMillis();
      if (Math.abs(wall - claims.getIssueTime().getTime()) > TOLERANCE) return "proof_stale";
      var digest = MessageDigest.getInstance("SHA-256").digest(token.getBytes(StandardCharsets.UTF_8));
      if (!Base64URL.encode(digest).toString().equals(claims.getStringClaim("ath"))) return "proof_wrong_token";
      if (!jwt.verify(new ECDSAVerifier(key.toECPublicKey()))) return "proof_forged";
      String thumbprint = key.computeThumbprint().toString();
      var cnf = SignedJWT.parse(token).getJWTClaimsSet().getJSONObjectClaim("cnf");
      if (cnf == null || !thumbprint.equals(cnf.get("jkt"))) return "proof_other_key";
      // A proof is accepted once. It is remembered for as long as its time could be accepted.
      provenUntil.values().removeIf(until -> until <= now());
      return provenUntil.putIfAbsent(thumbprint + "." + id, now() + 2 * TOLERANCE) == null ? null : "proof_replayed";
    } catch (java.text.ParseException | JOSEException | NoSuchAlgorithmException | RuntimeException error) {
      return "proof_malformed";
    }
  }

  private String verify(String token, boolean allowsBound) {
    try {
      SignedJWT jwt = SignedJWT.parse(token);
      var header = jwt.getHeader();
      var type = header.getType();
      if (!Set.of("typ", "alg", "kid").containsAll(header.toJSONObject().keySet())) return "malformed";
      if (!new JOSEObjectType("at+jwt").equals(type)) return "wrong_type";
      if (!JWSAlgorithm.ES256.equals(header.getAlgorithm())) return "wrong_algorithm";
      if (header.getKeyID() == null) return "malformed";
      if (revokedKeys.contains(header.getKeyID())) return "revoked_key";
      if (!(keys.getKeyByKeyId(header.getKeyID()) instanceof ECKey)) readNewerKeys();
      long readAt = keysReadAt;
      if (!(keys.getKeyByKeyId(header.getKeyID()) instanceof ECKey key)) return areKeysReadable ? "unknown_key" : "unavailable";
      if (!jwt.verify(new ECDSAVerifier(key.toECPublicKey()))) return "forged";
      String fault = faultOf(jwt.getJWTClaimsSet(), allowsBound);
      // The age comes first: a batch that arrives in between makes the token revoked, never what was known before fresh.
      boolean isFresh = now() - knownAt <= MAX_STALENESS && now() - readAt <= MAX_UNREAD;
      if (fault != null) return fault;
      if (revokedKeys.contains(header.getKeyID())) return "revoked_key";
      if (hasEnded(jwt.getJWTClaimsSet())) return "revoked";
      if (hasChanged(jwt.getJWTClaimsSet())) return "stale";
      return isFresh ? null : "unavailable";
    } catch (java.text.ParseException | JOSEException | RuntimeException error) {
      return "malformed";
    }
  }

  private String faultOf(JWTClaimsSet claims, boolean allowsBound) throws java.text.ParseException {
    for (String name : List.of("sub", "jti", "sid", "client_id")) {
      String value = claims.getStringClaim(name);
      if (value == null || value.isEmpty()) return "malformed";
    }
    if (claims.getExpirationTime() == null || claims.getIssueTime() == null) return "malformed";
    if (!issuer.equals(claims.getIssuer())) return "wrong_issuer";
    if (!claims.getAudience().contains(audience)) return "wrong_audience";
    if (claims.getClaims().containsKey("cnf") && !allowsBound) return "not_bearer";
    long wall = System.currentTimeMillis();
    if (claims.getNotBeforeTime() != null && wall < claims.getNotBeforeTime().getTime()) return "not_yet_valid";
    if (wall >= claims.getExpirationTime().getTime()) return "expired";
    return claims.getClaim("sv") == null || claims.getClaim("sv") instanceof Long ? null : "malformed";
  }

  /** Revocations are matched on the session, never on the text of a token: ECDSA signatures are malleable. */
  private boolean hasEnded(JWTClaimsSet claims) {
    Object created = claims.getClaim("sct");
    long createdAt = created instanceof Number number ? number.longValue() : claims.getIssueTime().getTime();
    return ended.containsKey(claims.getClaim("sid")) || createdAt <= revokedUntil;
  }

  private boolean hasChanged(JWTClaimsSet claims) {
    Change change = changed.get(claims.getClaim("sid"));
    long version = claims.getClaim("sv") instanceof Long number ? number : 0;
    return change != null && version < change.minVersion();
  }

  /** Reads the keys again, at most once a second: the key of a token may have been published since. */
  private synchronized void readNewerKeys() {
    try {
      if (now() - keysTriedAt >= 1000) readKeys();
    } catch (Exception error) {
      // The thread that reads the keys regularly reports it.
    }
  }

  private synchronized void readKeys() throws Exception {
    long startedAt = now();
    boolean isRead = false;
    try {
      keys = fetchKeys();
      keysReadAt = startedAt;
      isRead = true;
    } finally {
      areKeysReadable = isRead;
      keysTriedAt = now();
    }
  }

  private JWKSet fetchKeys() throws Exception {
    var request = HttpRequest.newBuilder(URI.create(adminUrl + "/.well-known/jwks.json")).timeout(Duration.ofSeconds(5));
    // The time limit of a request ends with the head of its response. This one includes the body.
    var sent = http.sendAsync(request.build(), BodyHandlers.ofString());
    JWKSet found;
    try {
      var response = sent.get(5, TimeUnit.SECONDS);
      if (response.statusCode() != 200) throw new IllegalStateException("the key set responds " + response.statusCode());
      found = JWKSet.parse(response.body());
    } finally {
      sent.cancel(true);
    }
    // A set without a key is a mistake of whoever serves it. The keys from before stay in use.
    if (found.getKeys().stream().noneMatch(ECKey.class::isInstance)) throw new IllegalStateException("the key set has no key for ES256");
    return found;
  }

  /** Follows one stream until it ends: envelopes of one byte of flags, four bytes of length, and JSON. */
  private void followFeed() throws Exception {
    byte[] message = ("{\"cursor\":\"" + cursor + "\"}").getBytes(StandardCharsets.UTF_8);
    var body = ByteBuffer.allocate(5 + message.length).put((byte) 0).putInt(message.length).put(message).array();
    var request = HttpRequest.newBuilder(URI.create(adminUrl + RPC)).timeout(Duration.ofMillis(MAX_SILENCE))
        .header("authorization", "Bearer " + adminToken).header("content-type", "application/connect+json")
        .header("connect-protocol-version", "1").POST(HttpRequest.BodyPublishers.ofByteArray(body));
    var response = http.send(request.build(), BodyHandlers.ofInputStream());
    arrivedAt = now();
    try (var stream = new DataInputStream(response.body())) {
      if (response.statusCode() != 200) throw new IllegalStateException("the feed responds " + response.statusCode());
      // A read of this client has no time limit: the stream is closed when it is silent.
      Thread watchdog = start(() -> closeIfSilent(stream), 500);
      try {
        for (long least = Long.MAX_VALUE; ; ) {
          int flags = stream.readUnsignedByte();
          byte[] content = stream.readNBytes(Math.min(stream.readInt(), 16 << 20));
          Map<String, Object> batch = JSONObjectUtils.parse(new String(content, StandardCharsets.UTF_8));
          if (flags != 0) {
            if (String.valueOf(batch.get("error")).contains("invalid_argument")) cursor = "";
            return;
          }
          least = apply(batch, least);
        }
      } finally {
        watchdog.interrupt();
      }
    }
  }

  /**
   * Returns the least difference between arrival and store time: that of a batch without delay. The rest is the age of this one.
   *
   * @throws IllegalStateException if it is late: a new stream begins with a new least difference, should the store's clock have stepped
   */
  private long apply(Map<String, Object> batch, long least) throws java.text.ParseException {
    long wall = System.currentTimeMillis(), asOf = millis(batch.get("asOfTime"), wall);
    arrivedAt = now();
    var revocations = JSONObjectUtils.getJSONObjectArray(batch, "revocations");
    for (int index = 0; revocations != null && index < revocations.length; index++) {
      var one = revocations[index];
      long expires = millis(one.get("expireTime"), Long.MAX_VALUE);
      if (!"expired".equals(one.get("reason"))) ended.merge((String) one.get("sessionId"), expires, Math::max);
    }
    var changes = JSONObjectUtils.getJSONObjectArray(batch, "staleTokens");
    for (int index = 0; changes != null && index < changes.length; index++) {
      var one = changes[index];
      long minVersion = ((Number) one.getOrDefault("minVersion", 0)).longValue();
      changed.merge((String) one.get("sessionId"), new Change(minVersion, millis(one.get("expireTime"), Long.MAX_VALUE)), Change::with);
    }
    if (batch.get("revokedKeyIds") != null) revokedKeys.addAll(JSONObjectUtils.getStringList(batch, "revokedKeyIds"));
    revokedUntil = Math.max(revokedUntil, millis(batch.get("revokedUntilTime"), Long.MIN_VALUE));
    cursor = (String) batch.getOrDefault("cursor", "");
    ended.values().removeIf(expires -> expires <= Math.min(asOf, wall));
    changed.values().removeIf(change -> change.expires() <= Math.min(asOf, wall));
    least = Math.min(least, arrivedAt - asOf);
    if (Boolean.TRUE.equals(batch.get("caughtUp"))) {
      long delay = arrivedAt - asOf - least;
      knownAt = arrivedAt - delay;
      if (delay > MAX_SILENCE) throw new IllegalStateException("the feed is late");
    }
    return least;
  }

  private void closeIfSilent(InputStream stream) throws IOException {
    if (now() - arrivedAt > MAX_SILENCE) stream.close();
  }

  private static long millis(Object time, long absent) {
    return time == null ? absent : Instant.parse((String) time).toEpochMilli();
  }

  /** The monotonic clock. A machine that is suspended needs the wall clock as well: see Staleness. */
  private static long now() {
    return System.nanoTime() / 1_000_000;
  }

  private interface Task {
    void run() throws Exception;
  }

  /** Runs a task again and again until it is interrupted, with a pause in between. */
  private static Thread start(Task task, long pause) {
    Thread thread = new Thread(() -> {
      while (!Thread.interrupted()) {
        try {
          task.run();
        } catch (Exception error) {
          System.err.println(error); // report it, and retry
        }
        try {
          Thread.sleep(pause);
        } catch (InterruptedException over) {
          return;
        }
      }
    });
    thread.setDaemon(true);
    thread.start();
    return thread;
  }
}
