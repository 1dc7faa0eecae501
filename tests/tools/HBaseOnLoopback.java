import java.io.File;
import java.io.FileOutputStream;
import java.net.InetSocketAddress;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.LocalHBaseCluster;
import org.apache.hadoop.hbase.rest.RESTServer;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/** HBase with its REST gateway in one process, on 127.0.0.1 alone: the stock start binds ZooKeeper to every interface. */
public class HBaseOnLoopback {
    /** The gateway's port, and an empty folder that is on the class path. */
    public static void main(String[] arguments) throws Exception {
        File folder = new File(arguments[1]);
        File log = new File(folder, "zookeeper");
        ZooKeeperServer keeper = new ZooKeeperServer(log, log, 2000);
        NIOServerCnxnFactory connections = new NIOServerCnxnFactory();
        connections.configure(new InetSocketAddress("127.0.0.1", 0), 100);
        connections.startup(keeper);

        Configuration site = new Configuration(false);
        site.set("hbase.rootdir", new File(folder, "data").toURI().toString());
        site.set("hbase.cluster.distributed", "false");
        site.set("hbase.zookeeper.quorum", "127.0.0.1");
        site.setInt("hbase.zookeeper.property.clientPort", connections.getLocalPort());
        for (String server : new String[] {"master", "regionserver"}) {
            site.set("hbase." + server + ".ipc.address", "127.0.0.1");
            site.set("hbase." + server + ".hostname", "localhost");
            site.setInt("hbase." + server + ".port", 0);
            site.setInt("hbase." + server + ".info.port", -1);
        }
        site.set("hbase.rest.host", "127.0.0.1");
        site.setInt("hbase.rest.port", Integer.parseInt(arguments[0]));
        site.setInt("hbase.rest.info.port", -1);
        // The gateway reads it from the class path.
        try (FileOutputStream file = new FileOutputStream(new File(folder, "hbase-site.xml"))) {
            site.writeXml(file);
        }

        LocalHBaseCluster cluster = new LocalHBaseCluster(HBaseConfiguration.create(), 1, 1);
        cluster.startup();
        while (cluster.getActiveMaster() == null || !cluster.getActiveMaster().isInitialized()) {
            Thread.sleep(100);
        }
        RESTServer.main(new String[] {"start"});
    }
}
