import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;

/**
 * What a Java program does with a database, each answer on a line of its own for test_jdbc.py to read. Arguments: the server's
 * address and a token; for TLS a file of certificates as well.
 */
public class Jdbc {
    public static void main(String[] arguments) throws SQLException {
        String url = "jdbc:arrow-flight-sql://" + arguments[0] + "/?database=plant&token=" + arguments[1];
        url += arguments.length > 2 ? "&tlsRootCerts=" + arguments[2] : "&useEncryption=false";
        try (Connection connection = DriverManager.getConnection(url)) {
            DatabaseMetaData about = connection.getMetaData();
            print("catalogs", about.getCatalogs());
            print("schemas", about.getSchemas());
            print("tables", about.getTables(null, "plant", "%", null), 2, 3, 4);
            print("columns", about.getColumns(null, "plant", "pump", "%"), 4, 6);
            print("keys", about.getPrimaryKeys(null, "plant", "pump"), 4, 5);
            try (Statement statement = connection.createStatement()) {
                print("rows", statement.executeQuery("SELECT * FROM pump ORDER BY time, id"));
                print("show", statement.executeQuery("SHOW TABLES FROM plant"), 2);
                insert(connection, statement);
                try {
                    statement.executeQuery("SELECT nothing FROM pump");
                    System.out.println("error|none");
                } catch (SQLException error) {
                    System.out.println("error|" + error.getMessage().replace('\n', ' '));
                }
            }
            query(connection);
        }
    }

    static void query(Connection connection) throws SQLException {
        String sql = "SELECT id, rpm, flow FROM pump WHERE id = ? AND rpm >= ? AND flow > ? ORDER BY time";
        try (PreparedStatement prepared = connection.prepareStatement(sql)) {
            System.out.println("placeholders|" + prepared.getParameterMetaData().getParameterCount());
            for (String id : new String[] {"7", "9"}) {
                prepared.setString(1, id);
                prepared.setLong(2, 1450);
                prepared.setDouble(3, -1);
                print("prepared", prepared.executeQuery());
            }
        }
    }

    static void insert(Connection connection, Statement statement) throws SQLException {
        String values = "INSERT INTO pump (time, id, rpm) VALUES (4000000000, '7', 1500)";
        System.out.println("insert|" + statement.executeUpdate(values));
        String copy = "INSERT INTO pump SELECT time + INTERVAL '1 day', id, rpm, flow FROM pump WHERE id = '9'";
        System.out.println("copied|" + statement.executeUpdate(copy));
        String sql = "INSERT INTO pump (time, id, rpm, flow) VALUES (?, ?, ?, ?)";
        try (PreparedStatement prepared = connection.prepareStatement(sql)) {
            prepared.setTimestamp(1, new java.sql.Timestamp(5_000));
            prepared.setString(2, "8");
            prepared.setLong(3, 1600);
            prepared.setNull(4, Types.DOUBLE);
            System.out.println("bound|" + prepared.executeUpdate());
            for (int row = 0; row < 3; row++) {
                prepared.setTimestamp(1, new java.sql.Timestamp(6_000 + row));
                prepared.setString(2, "8");
                prepared.setLong(3, 1700 + row);
                prepared.setDouble(4, row / 2.0);
                prepared.addBatch();
            }
            int stored = 0;
            for (int count : prepared.executeBatch()) {
                stored += count;
            }
            System.out.println("batch|" + stored);
        }
    }

    /** Prints the columns given, or all. */
    static void print(String what, ResultSet rows, int... columns) throws SQLException {
        int width = columns.length == 0 ? rows.getMetaData().getColumnCount() : columns.length;
        while (rows.next()) {
            StringBuilder line = new StringBuilder(what);
            for (int at = 0; at < width; at++) {
                line.append('|').append(rows.getString(columns.length == 0 ? at + 1 : columns[at]));
            }
            System.out.println(line);
        }
        rows.close();
    }
}
