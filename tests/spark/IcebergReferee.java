import java.util.HashMap;
import java.util.Map;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableProperties;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.mapping.NameMappingParser;
import org.apache.iceberg.rest.RESTCatalog;

/**
 * Iceberg's own implementation as a reader of a table, and as another writer of it.
 *
 * <p>Arguments: the catalog, the server for S3, the namespace, the table, a number of commits, and
 * names of columns in files. Prints the files and the rows of the table after each commit, and the
 * columns of the table for these names.
 */
public class IcebergReferee {
  public static void main(String[] args) throws Exception {
    String key = System.getenv("TEST_S3_KEY");
    String secret = System.getenv("TEST_S3_SECRET");
    Map<String, String> settings = new HashMap<>();
    settings.put("uri", args[0]);
    settings.put("warehouse", "s3://warehouse");
    settings.put("rest.sigv4-enabled", "true");
    settings.put("rest.signing-name", "s3tables");
    settings.put("rest.signing-region", "us-east-1");
    settings.put("rest.access-key-id", key);
    settings.put("rest.secret-access-key", secret);
    settings.put("io-impl", "org.apache.iceberg.aws.s3.S3FileIO");
    settings.put("s3.endpoint", args[1]);
    settings.put("s3.path-style-access", "true");
    settings.put("s3.access-key-id", key);
    settings.put("s3.secret-access-key", secret);
    settings.put("client.region", "us-east-1");
    try (RESTCatalog catalog = new RESTCatalog()) {
      catalog.initialize("referee", settings);
      Table table = catalog.loadTable(TableIdentifier.of(args[2], args[3]));
      int commits = Integer.parseInt(args[4]);
      for (int number = 0; number <= commits; number++) {
        if (number > 0) {
          table.updateProperties().set("referee.commit", Integer.toString(number)).commit();
        }
        table.refresh();
        long files = 0;
        long rows = 0;
        try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
          for (FileScanTask task : tasks) {
            files++;
            rows += task.file().recordCount();
          }
        }
        StringBuilder line = new StringBuilder(files + " " + rows);
        String json = table.properties().get(TableProperties.DEFAULT_NAME_MAPPING);
        for (int at = 5; at < args.length; at++) {
          int column = NameMappingParser.fromJson(json).find(args[at]).id();
          line.append(" ").append(table.schema().findColumnName(column));
        }
        System.out.println(line);
        System.out.flush();
      }
    }
    System.exit(0); // threads of the client for S3 may still run
  }
}
