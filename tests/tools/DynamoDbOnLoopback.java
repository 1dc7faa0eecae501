// DynamoDB Local on one port of 127.0.0.1, in memory: its own runner binds every interface.
// java -cp '.jars/dynamodb/*' tests/tools/DynamoDbOnLoopback.java PORT

import com.amazonaws.services.dynamodbv2.local.main.ServerRunner;
import com.amazonaws.services.dynamodbv2.local.server.DynamoDBProxyServer;
import java.lang.reflect.Field;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;

public class DynamoDbOnLoopback {
    public static void main(String[] arguments) throws Exception {
        DynamoDBProxyServer proxy =
            ServerRunner.createServerFromCommandLineArgs(
                new String[] {"-inMemory", "-sharedDb", "-disableTelemetry", "-port", arguments[0]});
        for (Field field : DynamoDBProxyServer.class.getDeclaredFields()) {
            field.setAccessible(true);
            if (field.get(proxy) instanceof Server server) {
                for (Connector connector : server.getConnectors()) {
                    ((ServerConnector) connector).setHost("127.0.0.1");
                }
            }
        }
        proxy.start();
        proxy.join();
    }
}
