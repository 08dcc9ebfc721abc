package orders;

import java.util.List;
import java.util.Map;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.security.oauth2.core.DelegatingOAuth2TokenValidator;
import org.springframework.security.oauth2.jwt.BadJwtException;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.security.oauth2.jwt.JwtClaimValidator;
import org.springframework.security.oauth2.jwt.JwtException;
import org.springframework.security.oauth2.jwt.JwtIssuerValidator;
import org.springframework.security.oauth2.jwt.JwtTimestampValidator;
import org.springframework.security.oauth2.jwt.JwtTypeValidator;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Receives logout tokens of OpenID Connect back-channel logout. They are signed as access tokens are. */
@RestController
class LogoutReceiver {
  private static final String EVENT = "http://schemas.openid.net/event/backchannel-logout";

  private final NimbusJwtDecoder decoder;
  private final EndedSessions ended;

  LogoutReceiver(
      @Value("${keys}") String keys,
      @Value("${issuer}") String issuer,
      @Value("${logout-audience}") String audience,
      EndedSessions ended) {
    this.ended = ended;
    decoder = Security.decoder(keys);
    decoder.setJwtValidator(
        new DelegatingOAuth2TokenValidator<>(
            new JwtTypeValidator(List.of("logout+jwt")), // The type keeps other tokens of the same issuer out.
            new JwtTimestampValidator(),
            new JwtIssuerValidator(issuer),
            new JwtClaimValidator<List<String>>("aud", all -> all != null && all.contains(audience)),
            new JwtClaimValidator<Map<String, Object>>("events", all -> all != null && all.containsKey(EVENT)),
            new JwtClaimValidator<Object>("nonce", nonce -> nonce == null)));
  }

  @PostMapping("/session-ended")
  ResponseEntity<Void> receive(@RequestParam(name = "logout_token", defaultValue = "") String token) {
    try {
      Jwt logout = decoder.decode(token);
      ended.add(logout.getClaimAsString("sid"));
      return ResponseEntity.ok().build();
    } catch (BadJwtException refused) {
      return ResponseEntity.badRequest().build();
    } catch (JwtException unread) {
      // The keys cannot be read now. The service sends the token again.
      return ResponseEntity.status(HttpStatus.SERVICE_UNAVAILABLE).build();
    }
  }
}
