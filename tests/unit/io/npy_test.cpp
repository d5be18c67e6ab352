#include "tandem/io/npy.h"

#include <algorithm>
#include <complex>
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/core/host_memory.h"
#include "tandem/fs/file_system.h"

#include "tests/unit/folder.h"

namespace tandem::io {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// A file with this header and data.
std::string npy(const std::string& descr, const std::string& order, const std::string& shape,
                const std::string& data) {
  std::string header =
      "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size() & 0xff) +
         static_cast<char>(header.size() >> 8) + header + data;
}

template <class T>
void round_trip(const std::vector<T>& values) {
  const Array array = Array::vector(values);
  const std::string bytes = encode_npy(array);
  EXPECT_EQ(bytes.find('\n') % 64, 63u) << "data begin at a multiple of 64";
  EXPECT_EQ(decode_npy(bytes, "x"), array);
}

TEST(Npy, KeepsEveryDtype) {
  round_trip<float>({1.5f, -2});
  round_trip<double>({1e300, 0});
  round_trip<std::int8_t>({-128, 127});
  round_trip<std::uint8_t>({0, 255});
  round_trip<std::int16_t>({-1, 300});
  round_trip<std::uint16_t>({65535});
  round_trip<std::int32_t>({-5});
  round_trip<std::uint32_t>({4000000000u});
  round_trip<std::int64_t>({INT64_MIN});
  round_trip<std::uint64_t>({UINT64_MAX});
  round_trip<Half>({Half(0.5f)});
  round_trip<BFloat16>({BFloat16(3.0f)});
  round_trip<std::complex<float>>({{1, 2}});
  round_trip<std::complex<double>>({{1, -2}});
  round_trip<std::string>({"", "a", std::string("b\0c", 3), "longest"});
  const Array flags = Array::from<bool>(std::initializer_list<bool>{true, false}, {2, 1});
  EXPECT_EQ(decode_npy(encode_npy(flags), "x"), flags);
}

TEST(Npy, TensorsAreSavedAndLoaded) {
  const Folder folder;
  const Tensor x{{1.5f, -2.0f}, {0.0f, 4.0f}};
  save_npy(folder.file("x.npy"), x);
  const Tensor again = load_npy(folder.file("x.npy"));
  EXPECT_EQ(again.array(), x.array());
  EXPECT_EQ(read_npy(folder.file("x.npy")), x.array());
  EXPECT_THROW(load_npy(folder.file("y.npy")), NotFoundError);
}

TEST(Npy, KeepsEveryShape) {
  for (const Shape& shape :
       {Shape{}, Shape{0}, Shape{3}, Shape{2, 0, 5}, Shape{1, 2, 3, 4, 5, 6, 7}})
    EXPECT_EQ(decode_npy(encode_npy(Array::zeros(DType::kFloat, shape)), "x").shape(), shape);
  EXPECT_THAT(encode_npy(Array::scalar(1.0f)), HasSubstr("'descr': '<f4'"));
  EXPECT_THAT(encode_npy(Array::zeros(DType::kInt8, {3})), HasSubstr("'|i1'"));
  EXPECT_THAT(encode_npy(Array::zeros(DType::kInt8, {3})), HasSubstr("'shape': (3,)"));
  EXPECT_THAT(encode_npy(Array::zeros(DType::kBFloat16, {2, 3})), HasSubstr("'<V2'"));
}

TEST(Npy, TakesFortranOrderAndBothByteOrders) {
  const Array expected =
      Array::from<std::uint8_t>(std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(decode_npy(npy("'|u1'", "True", "(2, 3)", "\x01\x04\x02\x05\x03\x06"), "x"), expected);
  const std::string swapped("\x01\x02\x00\x00\x00\x05", 6);
  EXPECT_EQ(decode_npy(npy("'>i2'", "False", "(3,)", swapped), "x"),
            Array::vector(std::vector<std::int16_t>{0x102, 0, 5}));
  EXPECT_EQ(decode_npy(npy("'|b1'", "False", "(2,)", std::string("\x00\x09", 2)), "x"),
            Array::from<bool>(std::initializer_list<bool>{false, true}, {2}));
}

TEST(Npy, RefusesWhatItDoesNotKnow) {
  const auto message = [](const std::string& bytes) -> std::string {
    try {
      decode_npy(bytes, "file");
    } catch (const UnimplementedError& error) {
      return error.what();
    }
    return "no UnimplementedError";
  };
  EXPECT_THAT(message(npy("'|O'", "False", "(1,)", "")), HasSubstr("pickled"));
  EXPECT_THAT(message(npy("[('a', '<f4')]", "False", "(1,)", "")), HasSubstr("fields"));
  EXPECT_THAT(message(npy("'<M8'", "False", "(1,)", "")), HasSubstr("'<M8'"));
  EXPECT_THROW(encode_npy(Array(DType::kVariant, {})), UnimplementedError);
  EXPECT_THROW(encode_npy(Array::scalar(std::string("a\0", 2))), InvalidArgumentError);
}

TEST(Npy, UnicodeBecomesUtf8) {
  // 'aé', '€😀' and '' with two characters each
  const std::string little(
      "a\0\0\0\xe9\0\0\0"
      "\xac\x20\0\0\x00\xf6\x01\0"
      "\0\0\0\0\0\0\0\0",
      24);
  std::string big = little;
  for (std::size_t i = 0; i < big.size(); i += 4) std::reverse(&big[i], &big[i] + 4);
  const Array expected = Array::vector<std::string>({"aé", "€😀", ""});
  EXPECT_EQ(decode_npy(npy("'<U2'", "False", "(3,)", little), "x"), expected);
  EXPECT_EQ(decode_npy(npy("'>U2'", "False", "(3,)", big), "x"), expected);
  EXPECT_EQ(decode_npy(npy("'<U1'", "False", "(1,)", std::string("\xff\xff\x10\0", 4)), "x"),
            Array::vector<std::string>({"\xf4\x8f\xbf\xbf"}));
  EXPECT_EQ(decode_npy(npy("'<U0'", "False", "(0,)", ""), "x").num_elements(), 0);
  EXPECT_EQ(
      decode_npy(npy("'<U1'", "True", "(2, 2)", std::string("a\0\0\0b\0\0\0c\0\0\0d\0\0\0", 16)),
                 "x"),
      Array::from<std::string>(std::vector<std::string>{"a", "c", "b", "d"}, {2, 2}));
  // Halves of surrogate pairs, and a number after the last character.
  for (const char* word : {"\0\xd8\0", "\xff\xdf\0", "\0\0\x11", "\0\0\xff"}) {
    const std::string bytes = std::string(word, 3) + '\0';
    EXPECT_THROW(decode_npy(npy("'<U1'", "False", "(1,)", bytes), "x"), DataLossError);
  }
}

TEST(Npy, RefusesShapesThatCouldNotBe) {
  std::string why;
  try {
    decode_npy(npy("'<f4'", "False", "(9223372036854775807, 4)", ""), "file");
  } catch (const DataLossError& error) {
    why = error.what();
  }
  EXPECT_THAT(why, EndsWith("multiply to more than 2^63 elements."));
}

TEST(Npy, RefusesDamagedFiles) {
  const std::string good = encode_npy(Array::vector(std::vector<float>{1, 2, 3}));
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_THROW(decode_npy(std::string_view(good).substr(0, size), "file"), DataLossError) << size;
  EXPECT_THROW(decode_npy("PK\x03\x04 and so on", "an archive"), DataLossError);
  const std::size_t before = host_memory_stats().peak;
  for (const std::string& bytes :
       {npy("'<f4'", "False", "(1000000000,)", "abcd"), npy("'<f4'", "False", "(-1,)", ""),
        npy("'|S0'", "False", "(1000000000000,)", ""),
        npy("'|S99999999999999999999'", "False", "(1,)", ""),
        npy("'<U1'", "False", "(1000000000,)", "abcd"), npy("'<U2'", "False", "(1,)", "abcd"),
        npy("'<U4611686018427387904'", "False", "(1,)", ""), npy("'<U'", "False", "(1,)", ""),
        npy("'<f4'", "False", "(4000000000, 4000000000, 4000000000)", ""),
        npy("'<f4'", "Maybe", "(1,)", "abcd"), npy("'<f4'", "False", "1", "abcd"),
        npy("'<f4', 'more': 1", "False", "(1,)", "abcd"),
        npy("'<f4' 'x'", "False", "(1,)", "abcd")}) {
    EXPECT_THROW(decode_npy(bytes, "file"), DataLossError) << bytes;
  }
  EXPECT_LT(host_memory_stats().peak - before, std::size_t{1} << 20);
}

TEST(Npy, SavesTensorsByName) {
  const std::string path = ::testing::TempDir() + "/weights.npz";
  const std::map<std::string, Tensor> tensors{{"dense/kernel", Tensor{{1.0, 2.0}, {3.0, 4.0}}},
                                              {"names", Tensor{"a", "bc"}},
                                              {"step", Tensor(7)}};
  save_npz(path, tensors);
  const auto loaded = load_npz(path);
  ASSERT_EQ(loaded.size(), 3u);
  for (const auto& [name, tensor] : tensors)
    EXPECT_EQ(loaded.at(name).array(), tensor.array()) << name;
  std::filesystem::remove(path);
}

TEST(Npy, AFileOfAnotherKindIsNotCalledDamaged) {
  const std::string one = encode_npy(Tensor{1.0, 2.0}.array());
  try {
    decode_npz(one, "one.npy");
    ADD_FAILURE() << "an array is no archive";
  } catch (const InvalidArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("read_npy"), std::string::npos) << error.what();
  }
  EXPECT_THROW(decode_npz("what is this", "x"), InvalidArgumentError);
}

TEST(Npy, RefusesDamagedArchives) {
  const std::string path = ::testing::TempDir() + "/damaged.npz";
  save_npz(path, {{"x", Tensor{1.0, 2.0}}});
  const std::string good = fs::read_file(path);
  std::filesystem::remove(path);
  EXPECT_EQ(decode_npz(good, "x").size(), 1u);
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_THROW(decode_npz(std::string_view(good).substr(0, size), "x"), DataLossError);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string changed = good;
    changed[at] = static_cast<char>(changed[at] ^ 0x41);
    try {
      decode_npz(changed, "x");
    } catch (const Error&) {  // what checksums do not cover may change unnoticed
    }
  }
}

}  // namespace
}  // namespace tandem::io
