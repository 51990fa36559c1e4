import java.io.File;
import java.util.Map;
import java.util.TreeMap;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;

/**
 * Reads an interval log with the Java HdrHistogram library. Prints JSON: tag -> count, p50, p99,
 * p99.9, max (ns), over all intervals of the tag.
 */
public class ReadHlog {
    private static final long HOUR_NS = 3_600_000_000_000L;

    public static void main(String[] args) throws Exception {
        Map<String, Histogram> tags = new TreeMap<>();
        HistogramLogReader reader = new HistogramLogReader(new File(args[0]));
        for (EncodableHistogram next = reader.nextIntervalHistogram(); next != null;
                next = reader.nextIntervalHistogram()) {
            Histogram interval = (Histogram) next;
            tags.computeIfAbsent(interval.getTag(), tag ->
                    new Histogram(1, HOUR_NS, interval.getNumberOfSignificantValueDigits()))
                .add(interval);
        }
        StringBuilder json = new StringBuilder("{");
        String comma = "";
        for (Map.Entry<String, Histogram> tag : tags.entrySet()) {
            Histogram all = tag.getValue();
            json.append(String.format(
                "%s\"%s\": {\"count\": %d, \"p50\": %d, \"p99\": %d, \"p99.9\": %d, \"max\": %d}",
                comma, tag.getKey(), all.getTotalCount(), all.getValueAtPercentile(50.0),
                all.getValueAtPercentile(99.0), all.getValueAtPercentile(99.9),
                all.getMaxValue()));
            comma = ", ";
        }
        System.out.println(json.append("}"));
    }
}
