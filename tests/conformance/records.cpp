// Record files that TensorFlow reads, and what we read from its files; check_records.py compares.
//
//   records write DIR    Examples, plain and compressed, and a SequenceExample
//   records read DIR     prints a line a subject: its name and its values

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/fs/file_system.h"
#include "tandem/tandem.h"

namespace {

namespace td = tandem;
using Strings = std::vector<std::string>;

constexpr const char* kCompressions[] = {"", "GZIP", "ZLIB"};

td::io::Example example(std::int64_t number) {
  td::io::Example e;
  e.set("number", std::vector<std::int64_t>{number - 5});
  std::vector<float> floats;
  for (int i = 0; i < 3; ++i) {
    floats.push_back(static_cast<float>(number) / 4 + static_cast<float>(i));
  }
  e.set("floats", floats);
  std::vector<std::int64_t> some;
  for (int i = 0; i < number % 4; ++i) some.push_back((number << 40) + i);
  e.set("some", some);
  e.set("name", Strings{std::string("\xff\0", 2) + std::to_string(number)});
  return e;
}

void write(const std::string& folder) {
  for (const std::string compression : kCompressions) {
    td::data::TFRecordWriter writer(folder + "/ours" + compression + ".tfrecord", {compression});
    for (int number = 0; number < 20; ++number) writer.write(example(number).serialize());
    writer.write("");
    writer.write(std::string(compression.empty() ? 700 : 70000, 'x'));
    writer.close();
  }
  td::io::SequenceExample sequence;
  sequence.context["id"] = std::vector<std::int64_t>{7};
  sequence.feature_lists["steps"] = {std::vector<float>{1, 2}, std::vector<float>{},
                                     std::vector<float>{3}};
  td::fs::write_file(folder + "/sequence.bin", sequence.serialize());
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(c) >> 4];
    text += kDigits[c & 15];
  }
  return text;
}
std::string shown(const std::string& value) { return hex(value); }
std::string shown(std::int64_t value) { return std::to_string(value); }
std::string shown(float value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", static_cast<double>(value));
  return text;
}

template <class T>
void print(const std::string& name, const td::Tensor& tensor) {
  std::cout << name;
  for (const T& value : tensor.data<T>()) std::cout << ' ' << shown(value);
  std::cout << '\n';
}

void print(const std::string& name, const td::data::Dataset& strings) {
  std::cout << name;
  for (const auto& element : strings) std::cout << ' ' << hex(element[0].item<std::string>());
  std::cout << '\n';
}

void read(const std::string& folder) {
  td::Tensor examples;
  for (const std::string compression : kCompressions) {
    td::data::TFRecordOptions options;
    options.compression_type = compression;
    const td::data::TFRecordDataset dataset(folder + "/theirs" + compression + ".tfrecord",
                                            options);
    print("records" + compression, dataset);
    examples = dataset.take(20).batch(20).iterator().next()[0];
  }
  const auto parsed = td::io::parse_example(
      examples, {{"number", td::io::FixedLenFeature{{}, td::DType::kInt64}},
                 {"floats", td::io::FixedLenFeature{{3}, td::DType::kFloat}},
                 {"some", td::io::VarLenFeature{td::DType::kInt64}},
                 {"name", td::io::FixedLenFeature{{1}, td::DType::kString}},
                 {"absent", td::io::FixedLenFeature{{2}, td::DType::kFloat, {{1.5, 2.5}}}}});
  print<std::int64_t>("number", parsed["number"]);
  print<float>("floats", parsed["floats"]);
  print<std::int64_t>("some", parsed.sparse.at("some").values);
  print<std::int64_t>("indices", parsed.sparse.at("some").indices);
  print<std::string>("name", parsed["name"]);
  print<float>("absent", parsed["absent"]);
  print("lines", td::data::TextLineDataset(folder + "/lines.txt"));
  td::data::FixedLengthRecordOptions fixed;
  const std::string records = folder + "/theirs.tfrecord";
  fixed.header_bytes = 4;
  fixed.footer_bytes = static_cast<std::int64_t>(std::filesystem::file_size(records) % 2);
  print("fixed", td::data::FixedLengthRecordDataset(Strings{records}, 2, fixed).take(100));
  std::cout << "csv";
  const td::data::CsvDataset table(Strings{folder + "/table.csv"},
                                   {td::DType::kInt32, "none", td::DType::kFloat});
  for (const auto& [a, b, c] : table.tuples<3>()) {
    std::cout << ' ' << a.item<std::int32_t>() << '/' << hex(b.item<std::string>()) << '/'
              << shown(c.item<float>());
  }
  std::cout << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    std::string(argv[1]) == "write" ? write(argv[2]) : read(argv[2]);
  } catch (const td::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
