// Calls the Java client for tests/clients: a JSON object per line on stdin, its result per line on stdout.
//
// {"base", "call", "parameters", "body"} calls the method `call`, such as `edges.tcp.update`, with the parameters of
// its path. {} lists the methods.

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.datatype.jdk8.Jdk8Module;
import com.fasterxml.jackson.datatype.jsr310.JavaTimeModule;
import com.ngrok.DefaultNgrokApiClient;
import com.ngrok.Ngrok;
import com.ngrok.definitions.Page;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URI;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;

public class Driver {
  static final ObjectMapper JSON =
      new ObjectMapper()
          .registerModules(new Jdk8Module(), new JavaTimeModule())
          .disable(SerializationFeature.WRITE_DATES_AS_TIMESTAMPS)
          .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);
  static final Map<String, Ngrok> CLIENTS = new HashMap<>();

  /** The fields of a body that are arguments of the method itself, after the parameters of the path. */
  static final Map<String, List<String>> ARGUMENTS =
      Map.ofEntries(
          Map.entry("abuseReports.create", List.of("urls")),
          Map.entry("agentIngresses.create", List.of("domain")),
          Map.entry("certificateAuthorities.create", List.of("ca_pem")),
          Map.entry("edges.httpsRoutes.create", List.of("match_type", "match")),
          Map.entry("ipPolicyRules.create", List.of("cidr", "ip_policy_id", "action")),
          Map.entry("ipRestrictions.create", List.of("type", "ip_policy_ids")),
          Map.entry("sshCredentials.create", List.of("public_key")),
          Map.entry("sshHostCertificates.create", List.of("ssh_certificate_authority_id", "public_key")),
          Map.entry("sshUserCertificates.create", List.of("ssh_certificate_authority_id", "public_key")),
          Map.entry("tlsCertificates.create", List.of("certificate_pem", "private_key_pem")));

  public static void main(String[] arguments) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      ObjectNode answer = JSON.createObjectNode();
      try {
        JsonNode asked = JSON.readTree(line);
        Object result = asked.has("call") ? call(asked) : methods(connect("http://localhost"), "");
        answer.set("result", JSON.valueToTree(result));
      } catch (Exception error) {
        answer.put("error", cause(error).toString());
      }
      System.out.println(answer);
    }
    System.exit(0);
  }

  static Throwable cause(Throwable error) {
    return error.getCause() == null ? error : cause(error.getCause());
  }

  static Ngrok connect(String base) {
    return CLIENTS.computeIfAbsent(
        base, uri -> new Ngrok(DefaultNgrokApiClient.newBuilder("sandbox").baseUri(URI.create(uri)).build()));
  }

  static TreeSet<String> methods(Object folder, String path) throws Exception {
    TreeSet<String> found = new TreeSet<>();
    for (Method method : folder.getClass().getDeclaredMethods()) {
      String name = path + method.getName();
      if (method.isSynthetic() || (method.getModifiers() & java.lang.reflect.Modifier.STATIC) != 0) continue;
      if (method.getReturnType().getName().endsWith("CallBuilder")) found.add(name);
      else if (method.getParameterCount() == 0) found.addAll(methods(method.invoke(folder), name + "."));
    }
    return found;
  }

  static Object call(JsonNode asked) throws Exception {
    String call = asked.get("call").asText();
    Object service = connect(asked.get("base").asText());
    String[] path = call.split("\\.");
    for (String name : Arrays.copyOf(path, path.length - 1)) service = service.getClass().getMethod(name).invoke(service);
    List<JsonNode> values = new ArrayList<>();
    asked.get("parameters").forEach(values::add);
    ObjectNode body = (ObjectNode) asked.get("body").deepCopy();
    if (call.endsWith(".replace")) body = JSON.createObjectNode().set("module", body);
    for (String field : ARGUMENTS.getOrDefault(call, List.of())) values.add(body.remove(field));
    Object builder = invoke(service, path[path.length - 1], values);
    var fields = body.fields();
    while (fields.hasNext()) {
      var field = fields.next();
      builder = invoke(builder, camel(field.getKey()), List.of(field.getValue()));
    }
    Method send = builder.getClass().getMethod("call");
    Object result = ((CompletionStage<?>) send.invoke(builder)).toCompletableFuture().get(60, TimeUnit.SECONDS);
    return result instanceof Page ? ((Page<?>) result).getPage() : result;
  }

  /** Calls the method with this name that takes the values themselves, not Optional. */
  static Object invoke(Object target, String name, List<JsonNode> values) throws Exception {
    for (Method method : target.getClass().getMethods()) {
      boolean optional = Arrays.asList(method.getParameterTypes()).contains(Optional.class);
      if (!method.getName().equals(name) || method.getParameterCount() != values.size() || optional) continue;
      Object[] arguments = new Object[values.size()];
      for (int at = 0; at < arguments.length; at++) {
        var type = JSON.constructType(method.getGenericParameterTypes()[at]);
        arguments[at] = JSON.readValue(JSON.treeAsTokens(values.get(at)), type);
      }
      return method.invoke(target, arguments);
    }
    throw new NoSuchMethodException(target.getClass().getSimpleName() + "." + name + "/" + values.size());
  }

  static String camel(String name) {
    StringBuilder text = new StringBuilder();
    for (String part : name.split("_"))
      text.append(text.length() == 0 ? part : Character.toUpperCase(part.charAt(0)) + part.substring(1));
    return text.toString();
  }
}
