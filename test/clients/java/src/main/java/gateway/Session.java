package gateway;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import java.util.Objects;
import org.lance.namespace.client.apache.ApiException;

/** Counts the calls of the client and those whose result was the right one. */
final class Session {
  /** One call and the checks of its result. */
  interface Work {
    void run() throws Exception;
  }

  private static final ObjectMapper JSON = new ObjectMapper();
  private int calls;
  private int passed;

  /** Makes one call; a failed one is told and the session goes on. */
  void check(String call, Work work) {
    calls++;
    try {
      work.run();
      passed++;
    } catch (Exception | AssertionError error) {
      System.err.println("Java: " + call + ": " + error);
    }
  }

  /** Makes one call that has to fail with a status and a code of the error table. */
  void rejected(String call, int status, int code, Work work) {
    check(
        call,
        () -> {
          try {
            work.run();
          } catch (ApiException error) {
            JsonNode body = JSON.readTree(error.getResponseBody());
            equal(error.getCode() + " " + body.path("code"), status + " " + code);
            return;
          }
          throw new AssertionError("the call succeeded");
        });
  }

  /** Prints the figures as one line of JSON, and tells whether every call passed. */
  boolean end(String client, String version) throws Exception {
    Map<String, Object> figures =
        Map.of("client", client, "version", version, "calls", calls, "passed", passed);
    System.out.println(JSON.writeValueAsString(figures));
    return passed == calls;
  }

  static void equal(Object got, Object want) {
    if (!Objects.equals(got, want)) {
      throw new AssertionError("got " + got + ", want " + want);
    }
  }
}
