// Writes TFRecords, or reads them and prints how fast: `read_records write FILE MB`,
// `read_records read PATH…`.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <tandem/tandem.h>

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  constexpr std::size_t kRecord = 100'000;
  if (arguments.size() == 3 && arguments[0] == "write") {
    tandem::data::TFRecordWriter writer(arguments[1]);
    std::string record(kRecord, 'x');
    const long count = std::atol(arguments[2].c_str()) * 1'000'000L / static_cast<long>(kRecord);
    for (long i = 0; i < count; ++i) {
      record.replace(0, 8, std::to_string(10'000'000 + i));
      writer.write(record);
    }
    writer.close();
    return 0;
  }
  if (arguments.size() < 2 || arguments[0] != "read") return 2;
  try {
    const auto begin = std::chrono::steady_clock::now();
    std::uint64_t bytes = 0;
    const std::vector<std::string> paths(arguments.begin() + 1, arguments.end());
    const tandem::data::TFRecordDataset records(paths);
    for (const tandem::data::Element& element : records) {
      bytes += element[0].data<std::string>()[0].size();
    }
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    std::printf("%.1f MB/s\n", static_cast<double>(bytes) / 1e6 / time.count());
  } catch (const tandem::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
