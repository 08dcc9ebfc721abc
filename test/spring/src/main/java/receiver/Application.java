package receiver;

import static org.springframework.security.config.Customizer.withDefaults;

import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.core.annotation.Order;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.Authentication;
import org.springframework.security.oauth2.client.AuthorizedClientServiceOAuth2AuthorizedClientManager;
import org.springframework.security.oauth2.client.ClientAuthorizationException;
import org.springframework.security.oauth2.client.InMemoryOAuth2AuthorizedClientService;
import org.springframework.security.oauth2.client.OAuth2AuthorizeRequest;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClientManager;
import org.springframework.security.oauth2.client.TokenExchangeOAuth2AuthorizedClientProvider;
import org.springframework.security.oauth2.client.endpoint.RestClientTokenExchangeTokenResponseClient;
import org.springframework.security.oauth2.client.registration.ClientRegistration;
import org.springframework.security.oauth2.client.registration.ClientRegistrationRepository;
import org.springframework.security.oauth2.client.registration.InMemoryClientRegistrationRepository;
import org.springframework.security.oauth2.core.AuthorizationGrantType;
import org.springframework.security.oauth2.jwt.JwtDecoder;
import org.springframework.security.oauth2.jwt.JwtValidators;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;
import org.springframework.security.oauth2.server.resource.introspection.OpaqueTokenIntrospector;
import org.springframework.security.oauth2.server.resource.introspection.SpringOpaqueTokenIntrospector;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.util.LinkedMultiValueMap;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** Spring Security with the documentation's own configuration. */
@SpringBootApplication
@RestController
public class Application {
  @Value("${issuer}") String issuer;
  @Value("${introspection}") String introspection;
  @Value("${introspection-id}") String id;
  @Value("${introspection-secret}") String secret;

  public static void main(String[] args) {
    SpringApplication.run(Application.class, args);
  }

  @Autowired ObjectProvider<OAuth2AuthorizedClientManager> clients;

  /** Returns the token for another service that the user's token is exchanged for, or the error of the exchange. */
  @GetMapping("/exchange")
  String exchange(Authentication user) {
    try {
      var request = OAuth2AuthorizeRequest.withClientRegistrationId("exchange").principal(user).build();
      return clients.getObject().authorize(request).getAccessToken().getTokenValue();
    } catch (ClientAuthorizationException refused) {
      return refused.getError().getErrorCode();
    }
  }

  @GetMapping({"/jwt", "/opaque"})
  String name(java.security.Principal principal) {
    return principal.getName();
  }

  /** The metadata are found by `issuer`. Its tokens are of the type `at+jwt` (RFC 9068). */
  @Bean
  JwtDecoder decoder() {
    NimbusJwtDecoder decoder = NimbusJwtDecoder.withIssuerLocation(issuer).validateType(false).build();
    decoder.setJwtValidator(JwtValidators.createAtJwtValidator().issuer(issuer).audience(issuer).clientId("app").build());
    return decoder;
  }

  @Bean
  OpaqueTokenIntrospector introspector() {
    return SpringOpaqueTokenIntrospector.withIntrospectionUri(introspection).clientId(id).clientSecret(secret).build();
  }

  @Bean
  ClientRegistrationRepository clients() {
    return new InMemoryClientRegistrationRepository(ClientRegistration.withRegistrationId("service")
        .clientId("app").clientSecret("unused").authorizationGrantType(AuthorizationGrantType.AUTHORIZATION_CODE)
        .redirectUri("{baseUrl}/login/oauth2/code/service").scope("openid").issuerUri(issuer)
        .authorizationUri(issuer + "/none").tokenUri(issuer + "/v1/oauth/token")
        .jwkSetUri(issuer + "/.well-known/jwks.json").build(),
        ClientRegistration.withRegistrationId("exchange").clientId(id).clientSecret(secret)
        .authorizationGrantType(AuthorizationGrantType.TOKEN_EXCHANGE).tokenUri(issuer + "/v1/oauth/token").build());
  }

  /** Exchanges the token of the user who makes the request (RFC 8693). */
  @Bean
  OAuth2AuthorizedClientManager manager(ClientRegistrationRepository registrations) {
    var endpoint = new RestClientTokenExchangeTokenResponseClient();
    endpoint.addParametersConverter(request -> {
      var parameters = new LinkedMultiValueMap<String, String>();
      parameters.add("resource", "https://orders.example");
      return parameters;
    });
    var provider = new TokenExchangeOAuth2AuthorizedClientProvider();
    provider.setAccessTokenResponseClient(endpoint);
    var manager = new AuthorizedClientServiceOAuth2AuthorizedClientManager(registrations,
        new InMemoryOAuth2AuthorizedClientService(registrations));
    manager.setAuthorizedClientProvider(provider);
    return manager;
  }

  @Bean
  @Order(1)
  SecurityFilterChain jwt(HttpSecurity http, JwtDecoder decoder) throws Exception {
    return http.securityMatcher("/jwt", "/exchange").authorizeHttpRequests(all -> all.anyRequest().authenticated())
        .oauth2ResourceServer(server -> server.jwt(jwt -> jwt.decoder(decoder))).build();
  }

  @Bean
  @Order(2)
  SecurityFilterChain opaque(HttpSecurity http, OpaqueTokenIntrospector introspector) throws Exception {
    return http.securityMatcher("/opaque").authorizeHttpRequests(all -> all.anyRequest().authenticated())
        .oauth2ResourceServer(server -> server.opaqueToken(token -> token.introspector(introspector))).build();
  }

  @Bean
  @Order(3)
  SecurityFilterChain logout(HttpSecurity http) throws Exception {
    return http.authorizeHttpRequests(all -> all.anyRequest().authenticated()).oauth2Login(withDefaults())
        .oidcLogout(logout -> logout.backChannel(withDefaults())).build();
  }
}
