package orders;

import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.security.oauth2.core.OAuth2Error;
import org.springframework.security.oauth2.core.OAuth2TokenValidator;
import org.springframework.security.oauth2.core.OAuth2TokenValidatorResult;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.stereotype.Component;

/** The sessions that have ended, until their last access token has expired. A restart forgets them. */
@Component
class EndedSessions implements OAuth2TokenValidator<Jwt> {
  private static final OAuth2TokenValidatorResult ENDED =
      OAuth2TokenValidatorResult.failure(new OAuth2Error("invalid_token", "the session has ended", null));

  /** Spring accepts a token for this time after it has expired (JwtTimestampValidator). */
  private static final Duration CLOCK_SKEW = Duration.ofSeconds(60);

  private final Map<String, Instant> forgottenAt = new ConcurrentHashMap<>();
  private final Duration accessTokenTtl;

  EndedSessions(@Value("${access-token-ttl}") Duration accessTokenTtl) {
    this.accessTokenTtl = accessTokenTtl;
  }

  void add(String sessionId) {
    Instant now = Instant.now();
    forgottenAt.values().removeIf(now::isAfter);
    forgottenAt.put(sessionId, now.plus(accessTokenTtl).plus(CLOCK_SKEW));
  }

  @Override
  public OAuth2TokenValidatorResult validate(Jwt token) {
    String sessionId = token.getClaimAsString("sid");
    return sessionId == null || forgottenAt.containsKey(sessionId) ? ENDED : OAuth2TokenValidatorResult.success();
  }
}
