package orders;

import static org.springframework.security.config.Customizer.withDefaults;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.http.SessionCreationPolicy;
import org.springframework.security.oauth2.core.DelegatingOAuth2TokenValidator;
import org.springframework.security.oauth2.jose.jws.SignatureAlgorithm;
import org.springframework.security.oauth2.jwt.JwtClaimValidator;
import org.springframework.security.oauth2.jwt.JwtDecoder;
import org.springframework.security.oauth2.jwt.JwtValidators;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;
import org.springframework.security.web.SecurityFilterChain;

@Configuration
class Security {
  /** SIGNING_ALGORITHM of the session service. */
  private static final SignatureAlgorithm ALGORITHM = SignatureAlgorithm.ES256;

  @Bean
  SecurityFilterChain routes(HttpSecurity http) throws Exception {
    return http
        .authorizeHttpRequests(all -> all.requestMatchers("/session-ended").permitAll().anyRequest().authenticated())
        .oauth2ResourceServer(server -> server.jwt(withDefaults()))
        .sessionManagement(sessions -> sessions.sessionCreationPolicy(SessionCreationPolicy.STATELESS))
        .csrf(csrf -> csrf.disable()) // No credential is a cookie.
        .build();
  }

  /**
   * Decodes access tokens (RFC 9068). Their type is `at+jwt`, which the decoder of the property `issuer-uri` refuses. The validator wants
   * a rule for `client_id`: any client will do here.
   */
  @Bean
  JwtDecoder accessTokens(
      @Value("${keys}") String keys,
      @Value("${issuer}") String issuer,
      @Value("${audience}") String audience,
      EndedSessions ended) {
    NimbusJwtDecoder decoder = decoder(keys);
    var claims =
        JwtValidators.createAtJwtValidator()
            .issuer(issuer)
            .audience(audience)
            .validators(all -> all.put("client_id", new JwtClaimValidator<Object>("client_id", id -> id != null)))
            .build();
    // The token of a client that proves a key with each request (DPoP) is no bearer token.
    var bearer = new JwtClaimValidator<Object>("cnf", binding -> binding == null);
    decoder.setJwtValidator(new DelegatingOAuth2TokenValidator<>(claims, bearer, ended));
    return decoder;
  }

  /** The keys are read when a token needs them, so that the application starts without the session service. */
  static NimbusJwtDecoder decoder(String keys) {
    return NimbusJwtDecoder.withJwkSetUri(keys).jwsAlgorithm(ALGORITHM).validateType(false).build();
  }
}
