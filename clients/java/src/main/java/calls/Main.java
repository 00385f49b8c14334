package calls;

/** Calls a live bridge with the clients that openapi-generator made of its documents. */
public final class Main {
    private Main() {}

    /** Fails if an answer is not what it should be. */
    public static void main(String[] args) throws Exception {
        Calls.main();
        Shapes.main();
        System.out.println("all calls are as they should be");
    }
}
