import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.util.concurrent.ThreadLocalRandom;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Bills orders under an RLock: once as a job, or as a service until its input ends. */
public final class Bill {
    private final BufferedReader answers;
    private final Socket section;
    private final String worker;
    private final String release;

    private Bill(String address, String worker, String release) throws IOException {
        int colon = address.lastIndexOf(':');
        section = new Socket(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)));
        answers = new BufferedReader(new InputStreamReader(section.getInputStream()));
        this.worker = worker;
        this.release = release;
    }

    /** Tells the test, and waits for its answer. */
    private void say(String line) throws IOException {
        section.getOutputStream().write((line + "\n").getBytes());
        if (answers.readLine() == null) {
            throw new IOException("the test is gone");
        }
    }

    /** The work of a job that holds the lock. */
    private void bill() throws IOException, InterruptedException {
        String token = System.getenv().getOrDefault("HOLDFAST_TOKEN", "0");
        say("enter " + worker + " " + release + " " + token);
        say("at " + worker + " both-held");
        Thread.sleep(ThreadLocalRandom.current().nextInt(8));
        say("leave");
    }

    private void billUnderLock(RedissonClient redisson) throws IOException, InterruptedException {
        RLock lock = redisson.getLock("order:42");
        lock.lock();
        try {
            bill();
        } finally {
            lock.unlock();
        }
    }

    private static void waitForEnd() {
        try {
            while (System.in.read() >= 0) { // the test writes nothing
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Arguments: once or service, Redis, section, worker, release. */
    public static void main(String[] args) throws Exception {
        Config config = new Config();
        config.setLockWatchdogTimeout(4000);
        config.useSingleServer().setAddress("redis://" + args[1]).setConnectionMinimumIdleSize(1);
        RedissonClient redisson = Redisson.create(config);
        Bill bill = new Bill(args[2], args[3], args[4]);
        if (args[0].equals("service")) {
            Thread parent = new Thread(Bill::waitForEnd);
            parent.setDaemon(true);
            parent.start();
            while (parent.isAlive()) {
                bill.billUnderLock(redisson);
                Thread.sleep(ThreadLocalRandom.current().nextInt(10));
            }
        } else {
            bill.billUnderLock(redisson);
        }
        redisson.shutdown();
    }
}
