import java.io.FileInputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * A small order service that has a bad half minute: what goes wrong really goes wrong, in the Java runtime's own words.
 *
 * <p>{@code java -Xmx48m Orders.java FULL_DISK_DIRECTORY 2>orders.log}; see capture.sh.
 */
public final class Orders {
    private static final Logger HTTP = Logger.getLogger("shop.http");
    private static final Logger STORE = Logger.getLogger("shop.store");
    private static final Logger MAIL = Logger.getLogger("shop.mail");
    private static final Logger MAIN = Logger.getLogger("shop.Main");
    private static final Random RANDOM = new Random(5);
    private static final String[] PLACES = {"Oslo", "Lima", "Graz", "Turku", "Porto", "Busan", "Ghent", "Quito"};
    private static final String[] GOODS = {"kettle", "lamp", "desk", "rug", "clock", "mirror", "stool", "shelf"};
    private static final Map<String, Integer> STOCK = Map.of("kettle", 40, "lamp", 12, "desk", 3, "rug", 25);
    private static int number = 48210;

    private interface Step {
        void run() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        Path full = Path.of(arguments[0]);
        MAIN.info("starting, Java " + System.getProperty("java.version") + ", heap limit "
                + (Runtime.getRuntime().maxMemory() >> 20) + " MiB");
        attempt(MAIN, "settings file could not be read, defaults are used", () -> new FileInputStream("/etc/shop/shop.properties").close());
        Properties settings = new Properties();
        settings.setProperty("http.port", "80a80");
        attempt(MAIN, "setting http.port ignored", () -> Integer.parseInt(settings.getProperty("http.port")));
        attempt(HTTP, "key store not opened, serving without TLS", Orders::openKeyStore);
        MAIN.info("listening on port 8080");
        traffic(110);
        attempt(STORE, "stock of product mirror not updated", () -> stockOf("mirror"));
        traffic(90);
        try (ServerSocket silent = new ServerSocket(0)) {
            for (int again = 1; again <= 3; again++) {
                int port = silent.getLocalPort();
                attempt(HTTP, "payment gateway gave no answer, attempt " + again + " of 3", () -> payment(port));
            }
        }
        traffic(80);
        attempt(MAIL, "confirmation for order 48391 not sent", () -> new Socket().connect(new InetSocketAddress("127.0.0.1", 2525)));
        traffic(100);
        attempt(STORE, "report of deliveries abandoned", () -> LocalDate.parse("2026-02-30"));
        traffic(70);
        flood();
        traffic(60);
        attempt(STORE, "invoice archive not written", () -> fill(full.resolve("invoices.dat")));
        attempt(STORE, "order journal cannot grow", () -> fill(full.resolve("journal.dat")));
        traffic(90);
        deadlock();
        traffic(60);
        attempt(STORE, "price rule SUMMER loops", () -> discount(0));
        traffic(50);
        Thread exporter = new Thread(Orders::export, "export-1");
        exporter.setUncaughtExceptionHandler((thread, fault) -> STORE.log(Level.SEVERE, "thread " + thread.getName() + " died", fault));
        exporter.start();
        exporter.join();
        traffic(80);
        try (ServerSocket taken = new ServerSocket(0)) {
            attempt(MAIN, "metrics endpoint disabled", () -> new ServerSocket(taken.getLocalPort()).close());
        }
        attempt(STORE, "partner feed discarded", () -> new String[] {"sku", "amount"}[2].length());
        attempt(STORE, "backup of table customers skipped", () -> Files.copy(Path.of("/proc/self/mem"), full.resolve("customers")));
        traffic(70);
        MAIN.info("stop requested, waiting for 2 open requests");
        MAIN.info("stopped after " + ManagementFactory.getRuntimeMXBean().getUptime() / 1000 + " s");
    }

    private static void attempt(Logger logger, String what, Step step) {
        try {
            step.run();
        } catch (Exception | StackOverflowError fault) {
            logger.log(fault instanceof IOException ? Level.WARNING : Level.SEVERE, what, fault);
        }
    }

    private static void traffic(int requests) throws InterruptedException {
        for (int i = 0; i < requests; i++) {
            String place = PLACES[RANDOM.nextInt(PLACES.length)];
            String thing = GOODS[RANDOM.nextInt(GOODS.length)];
            int ms = 3 + RANDOM.nextInt(60);
            switch (RANDOM.nextInt(5)) {
                case 0 -> HTTP.info("GET /products/" + thing + " 200 in " + ms + " ms");
                case 1 -> HTTP.info("POST /orders 201 in " + 2 * ms + " ms, order " + ++number);
                case 2 -> STORE.info("order " + number + " saved: " + (1 + RANDOM.nextInt(4)) + " x " + thing + " to " + place);
                case 3 -> MAIL.info("confirmation for order " + number + " handed to the relay after " + ms + " ms");
                default -> STORE.fine("never shown");
            }
            Thread.sleep(8 + RANDOM.nextInt(40));
        }
    }

    private static void openKeyStore() throws Exception {
        KeyStore made = KeyStore.getInstance("PKCS12");
        made.load(null, null);
        Path file = Files.createTempFile("shop", ".p12");
        try (var out = Files.newOutputStream(file)) {
            made.store(out, "right".toCharArray());
        }
        try (var in = Files.newInputStream(file)) {
            KeyStore.getInstance("PKCS12").load(in, "wrong".toCharArray());
        } finally {
            Files.delete(file);
        }
    }

    private static void stockOf(String product) {
        try {
            int left = STOCK.get(product);
            STORE.info("left: " + left);
        } catch (NullPointerException fault) {
            throw new IllegalStateException("no stock entry for " + product, fault);
        }
    }

    private static void payment(int port) throws IOException {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.setSoTimeout(900);
            socket.getOutputStream().write("PAY 48377\n".getBytes(StandardCharsets.US_ASCII));
            if (socket.getInputStream().read() < 0) {
                throw new IOException("closed");
            }
        }
    }

    private static void flood() throws InterruptedException {
        var pool = new ThreadPoolExecutor(2, 2, 1, TimeUnit.SECONDS, new ArrayBlockingQueue<>(4));
        for (int i = 1; i <= 9; i++) {
            try {
                pool.execute(() -> {
                    try {
                        Thread.sleep(300);
                    } catch (InterruptedException fault) {
                        Thread.currentThread().interrupt();
                    }
                });
            } catch (RejectedExecutionException fault) {
                HTTP.log(Level.WARNING, "thumbnail job " + i + " turned away");
            }
        }
        pool.shutdown();
        pool.awaitTermination(5, TimeUnit.SECONDS);
    }

    private static void fill(Path file) throws IOException {
        byte[] block = new byte[1 << 16];
        try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
            for (int i = 0; i < 1 << 12; i++) {
                out.write(block);
            }
        }
    }

    private static void deadlock() throws InterruptedException {
        Object cart = new Object();
        Object ledger = new Object();
        daemon("cart-writer", cart, ledger);
        daemon("ledger-writer", ledger, cart);
        Thread.sleep(400);
        long[] stuck = ManagementFactory.getThreadMXBean().findDeadlockedThreads();
        for (ThreadInfo info : ManagementFactory.getThreadMXBean().getThreadInfo(stuck)) {
            STORE.severe("watchdog: " + info.getThreadName() + " is " + info.getThreadState() + " on "
                    + info.getLockName().replaceAll("@.*", "") + " held by " + info.getLockOwnerName());
        }
    }

    private static void daemon(String name, Object first, Object second) {
        Thread thread = new Thread(() -> {
            synchronized (first) {
                try {
                    Thread.sleep(150);
                } catch (InterruptedException fault) {
                    return;
                }
                synchronized (second) {
                    STORE.info(name + " finished");
                }
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }

    private static int discount(int depth) {
        return 1 + discount(depth + 1);
    }

    private static void export() {
        List<byte[]> rows = new ArrayList<>();
        STORE.info("export of the year 2025 begins");
        while (true) {
            rows.add(new byte[1 << 20]);
        }
    }
}
