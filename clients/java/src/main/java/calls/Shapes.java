package calls;

import static calls.Calls.equal;

import java.math.BigDecimal;
import java.util.List;
import java.util.Map;
import shapes.ApiClient;
import shapes.ApiException;
import shapes.JSON;
import shapes.api.ShapesJavaApi;
import shapes.model.*;

/** Calls tools whose arguments have every shape, and gets the same back. */
final class Shapes {
    private Shapes() {}

    static void main() throws ApiException {
        var api = new ShapesJavaApi(new ApiClient().setBasePath(System.getenv("SHAPES") + "/tools/shapes_java"));
        same(api);
        text(api);
    }

    /** Tools whose answers have the schema of their arguments. */
    private static void same(ShapesJavaApi api) throws ApiException {
        var leaf = new ShapesJavaRecursionNode().label("leaf");
        var root = new ShapesJavaRecursionNode().label("root").addChildrenItem(leaf);
        same(api.recursion(new RecursionRequest().root(root)), "{\"root\":{\"label\":\"root\",\"children\":[{\"label\":\"leaf\",\"children\":[]}]}}");

        var constants = new ConstantRequest().kind(ConstantRequest.KindEnum.CIRCLE).version(ConstantRequest.VersionEnum.NUMBER_1).flag(true);
        same(api.constant(constants), "{\"kind\":\"circle\",\"version\":1,\"flag\":true}");

        var values = new EnumerationRequest()
                .mode(EnumerationRequest.ModeEnum.FAST)
                .mixed(new EnumerationRequestMixed("a"))
                .maybe(EnumerationRequest.MaybeEnum.ON)
                .flags(false);
        same(api.enumeration(values), "{\"mode\":\"fast\",\"mixed\":\"a\",\"maybe\":\"on\",\"flags\":false}");

        var tuple = api.tuple(new TupleRequest().point(List.of(BigDecimal.ONE, new BigDecimal("2.5"))).open(List.of("a")));
        same(tuple, "{\"point\":[1,2.5],\"open\":[\"a\"]}");

        // What may be a string or a list of them, this client can only send as a string.
        var unions = new UnionsRequest().one(new UnionsRequestOne(1)).some("x")._list(new UnionsRequestList("a"));
        same(api.unions(unions), "{\"one\":1,\"some\":\"x\",\"list\":\"a\"}");

        same(api.map(new MapRequest().labels(Map.of("a", "b"))), "{\"labels\":{\"a\":\"b\"}}");
        same(api.names(new NamesRequest().top("1").propertyClass("2").grüße("3")._1st("4").toFrom("5").$ref("6")),
                "{\"__top\":\"1\",\"class\":\"2\",\"grüße\":\"3\",\"1st\":\"4\",\"to/from\":\"5\",\"$ref\":\"6\"}");
    }

    /** Tools that say nothing of their answers. */
    private static void text(ShapesJavaApi api) throws ApiException {
        text(api.mapAtTheRoot(Map.of("a", 1)), "{\"a\":1}");
        var origin = new ConstantsThatAreObjectsRequestOrigin()
                .x(ConstantsThatAreObjectsRequestOrigin.XEnum.NUMBER_0)
                .y(ConstantsThatAreObjectsRequestOrigin.YEnum.NUMBER_0);
        text(api.constantsThatAreObjects(new ConstantsThatAreObjectsRequest().origin(origin)), "{\"origin\":{\"x\":0,\"y\":0}}");
        text(api.titleIsAName(new Problem1().a("x")), "{\"a\":\"x\"}");
        text(api.aBC6e7789e(new ABC6e7789eRequest().a("x")), "{\"a\":\"x\"}");
        text(api.id22cbbe2c(new Id22cbbe2cRequest().a("x")), "{\"a\":\"x\"}");
        text(api.noArguments(), "{}");
    }

    private static void same(Object got, String want) {
        var gson = JSON.getGson();
        equal(gson.toJsonTree(got), gson.fromJson(want, com.google.gson.JsonElement.class));
    }

    private static void text(Content got, String want) {
        equal(got.getContent().get(0).getText(), want);
    }
}
