package orders;

import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@SpringBootApplication
@RestController
public class Application {
  public static void main(String[] args) {
    SpringApplication.run(Application.class, args);
  }

  /** `role` is a claim that CreateSession was given. */
  @GetMapping("/api/me")
  Map<String, Object> me(@AuthenticationPrincipal Jwt caller) {
    return Map.of("subject", caller.getSubject(), "role", caller.getClaims().getOrDefault("role", ""));
  }
}
