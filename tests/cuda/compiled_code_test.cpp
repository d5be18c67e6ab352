// Compiled code on disk: what was put is found, and what is damaged is not taken for it.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tandem/device/cuda/internal/code_cache.h"

namespace tandem::cuda {
namespace {

namespace files = std::filesystem;

class CodeOnDisk : public testing::Test {
 protected:
  void SetUp() override { files::remove_all(folder_); }
  void TearDown() override { files::remove_all(folder_); }

  std::string read() const {
    std::ifstream file(cache_.path(source_), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& bytes) const {
    std::ofstream(cache_.path(source_), std::ios::binary) << bytes;
  }

  const std::string folder_ = testing::TempDir() + "code-cache";
  const CodeCache cache_{folder_};
  const TextHash source_ = TextHash::of("a kernel");
  const std::vector<std::byte> code_{std::byte{1}, std::byte{0}, std::byte{200}};
};

TEST_F(CodeOnDisk, IsFoundAgain) {
  EXPECT_FALSE(cache_.find(source_));
  cache_.put(source_, code_);
  EXPECT_EQ(cache_.find(source_), code_);
  EXPECT_EQ(CodeCache(folder_).find(source_), code_);
  EXPECT_FALSE(cache_.find(TextHash::of("another kernel")));
  // Nothing else lies there.
  EXPECT_EQ(std::distance(files::directory_iterator(folder_), files::directory_iterator()), 1);
}

TEST_F(CodeOnDisk, IsNotTakenFromADamagedFile) {
  cache_.put(source_, code_);
  const std::string whole = read();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    write(changed);
    EXPECT_FALSE(cache_.find(source_)) << "byte " << i;
    write(whole.substr(0, i));
    EXPECT_FALSE(cache_.find(source_)) << "cut off at " << i;
  }
  write(whole + 'x');
  EXPECT_FALSE(cache_.find(source_));
  cache_.put(source_, code_);
  EXPECT_EQ(cache_.find(source_), code_);
}

TEST_F(CodeOnDisk, IsNotKeptWhereThereIsNoPlace) {
  const CodeCache none(""), unwritable("/proc/no-such-folder");
  for (const CodeCache& cache : {none, unwritable}) {
    cache.put(source_, code_);
    EXPECT_FALSE(cache.find(source_));
  }
}

TEST_F(CodeOnDisk, LiesInTheCacheFolder) {
  setenv("TANDEM_CACHE_DIR", folder_.c_str(), 1);
  EXPECT_EQ(CodeCache::standard().path(source_),
            folder_ + "/cuda-kernels/" + source_.digits() + ".bin");
}

}  // namespace
}  // namespace tandem::cuda
