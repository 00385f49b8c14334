package calls;

import client.ApiClient;
import client.ApiException;
import client.JSON;
import client.api.DemoApi;
import client.api.EverythingApi;
import client.api.FilesApi;
import client.api.MemoryApi;
import client.model.DemoAddRequest;
import client.model.DemoFailRequest;
import client.model.DemoGreetRequest;
import client.model.EverythingEchoRequest;
import client.model.EverythingGetSumRequest;
import client.model.FilesReadTextFileRequest;
import client.model.Problem;
import java.math.BigDecimal;
import java.nio.file.Path;
import java.util.Objects;

/** Calls a live bridge with the client that openapi-generator made of its document. */
final class Calls {
    private static final Path HELLO = Path.of(System.getenv("FILES"), "hello.txt");

    private Calls() {}

    /** Calls a tool of every server, and fails if an answer is not what it should be. */
    static void main() throws ApiException {
        ApiClient bridge = new ApiClient().setBasePath(System.getenv("BRIDGE"));

        callDemo(new DemoApi(bridge));
        callServers(bridge);
        callInVain(new DemoApi(bridge));
    }

    private static void callDemo(DemoApi demo) throws ApiException {
        var sum = demo.demoAdd(new DemoAddRequest().a(BigDecimal.valueOf(40)).b(BigDecimal.valueOf(2)));
        equal(sum.getSum().intValueExact(), 42);

        var greeting = demo.demoGreet(new DemoGreetRequest().name("Ada").language(DemoGreetRequest.LanguageEnum.DE));
        equal(greeting.getContent().get(0).getText(), "Guten Tag, Ada!");
    }

    private static void callServers(ApiClient bridge) throws ApiException {
        var everything = new EverythingApi(bridge);
        var echo = everything.everythingEcho(new EverythingEchoRequest().message("grüße"));
        equal(echo.getContent().get(0).getText(), "Echo: grüße");

        var added = everything.everythingGetSum(new EverythingGetSumRequest().a(BigDecimal.ONE).b(BigDecimal.valueOf(2)));
        equal(added.getContent().get(0).getText(), "The sum of 1 and 2 is 3.");

        var files = new FilesApi(bridge);
        var head = new FilesReadTextFileRequest().path(HELLO.toString()).head(BigDecimal.ONE);
        equal(files.filesReadTextFile(head).getContent(), "first");

        var graph = new MemoryApi(bridge).memoryReadGraph();
        equal(graph.getRelations().size(), 0);
    }

    private static void callInVain(DemoApi demo) {
        Problem refused = problem(() -> demo.demoAdd(new DemoAddRequest().a(BigDecimal.ONE)));
        equal(refused.getCode(), "invalid-arguments");
        equal(refused.getErrors().get(0).getMessage(), "misses \"b\"");

        Problem failed = problem(() -> demo.demoFail(new DemoFailRequest()));
        equal(failed.getCode(), "tool-error");
        equal(failed.getContent().get(0).getText(), "disk full");
    }

    /** A call that must fail. */
    private interface Call {
        void make() throws ApiException;
    }

    private static Problem problem(Call call) {
        try {
            call.make();
        } catch (ApiException e) {
            equal(e.getCode(), 422);
            return JSON.getGson().fromJson(e.getResponseBody(), Problem.class);
        }
        throw new AssertionError("the call did not fail");
    }

    static void equal(Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }
}
