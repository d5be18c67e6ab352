// What the real package reads, writes and refuses: tests/conformance/safetensors_files.py.

#include "tandem/io/safetensors.h"

#include <cstring>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tandem/core/error.h"
#include "tandem/fs/file_system.h"
#include "tandem/ops/creation_ops.h"

#include "tests/unit/folder.h"

namespace tandem::io {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

TEST(Safetensors, TensorsOutliveTheReaderAndAreNotCopied) {
  const Folder folder;
  const std::string path = folder.file("w.safetensors");
  save_safetensors(path, {{"w", ones({1024, 1024})}});
  Array w, again;
  {
    const SafetensorsReader reader(path);
    w = reader.read("w");
    again = reader.read("w");
  }
  EXPECT_EQ(w.raw_data(), again.raw_data());  // both are the file's bytes
  EXPECT_FALSE(w.writable_in_place());
  EXPECT_TRUE(w == ones({1024, 1024}).array());
}

TEST(Safetensors, UnalignedTensorsAreCopied) {
  // A header of 57 bytes puts the elements at an odd place.
  std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  header.resize(57, ' ');
  const float value = 2.5F;
  std::string data(4, '\0');
  std::memcpy(data.data(), &value, 4);
  const std::string bytes = file_of(header, data);
  EXPECT_EQ(SafetensorsReader(bytes, "memory").read("a").values<float>()[0], 2.5F);
}

// The format allows a header of 100 MB, which has room for a million tensors.
TEST(Safetensors, AHeaderOfVeryManyTensorsIsReadInLinearTime) {
  constexpr int kTensors = 100'000;
  std::string header = "{";
  for (int i = 0; i < kTensors; ++i)
    header +=
        cat("\"t", i, R"(":{"dtype":"U8","shape":[1],"data_offsets":[)", i, ",", i + 1, "]},");
  header.back() = '}';
  const SafetensorsReader reader(file_of(header, std::string(kTensors, 'x')), "memory");
  EXPECT_EQ(reader.names().size(), kTensors);

  header.back() = ',';
  header += R"("t0":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  try {
    const SafetensorsReader twice(file_of(header, std::string(kTensors, 'x')), "memory");
    FAIL() << "the name t0 is there twice";
  } catch (const DataLossError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the key 't0' is twice in one object"));
  }
}

TEST(Safetensors, TypesWithoutADtypeAreListed) {
  const std::string bytes =
      file_of(R"({"a":{"dtype":"F8_E8M0","shape":[2],"data_offsets":[0,2]}})", "ab");
  const SafetensorsReader reader(bytes, "memory");
  EXPECT_THAT(reader.names(), ElementsAre("a"));
  EXPECT_EQ(reader.type("a"), "F8_E8M0");
  EXPECT_THROW(reader.read("a"), UnimplementedError);
  EXPECT_THROW(reader.read("b"), NotFoundError);
}

TEST(Safetensors, BytesThatAreNoBoolAreRefused) {
  const std::string bytes =
      file_of(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", "\1\2");
  EXPECT_THROW(SafetensorsReader(bytes, "memory").read("a"), DataLossError);
}

TEST(Safetensors, WhatTheFormatLacksIsNotWritten) {
  const Folder folder;
  const std::string path = folder.file("w.safetensors");
  EXPECT_THROW(save_safetensors(path, {{"s", Tensor(std::string("text"))}}), InvalidArgumentError);
  EXPECT_THROW(save_safetensors(path, {{"\xff", ones({1})}}), InvalidArgumentError);
  EXPECT_EQ(folder.files(), 0U);
}

}  // namespace
}  // namespace tandem::io
