// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace lambdadnn {
namespace {

using testing::HasSubstr;

StateTensor Tensor(const std::string& name, ElementType type, std::vector<int64_t> shape,
                   uint8_t first) {
  int64_t bytes = ElementBytes(type);
  for (const int64_t dimension : shape) bytes *= dimension;
  StateTensor tensor{name, type, std::move(shape), {}};
  for (int64_t i = 0; i < bytes; ++i)
    tensor.data.push_back(static_cast<std::byte>(first + static_cast<uint8_t>(i)));
  return tensor;
}

std::vector<StateTensor> Tensors() {
  return {Tensor("fc.weight", ElementType::kF32, {2, 3}, 1),
          Tensor("fc.bias", ElementType::kF32, {1}, 30), Tensor("seen", ElementType::kI64, {}, 60),
          Tensor("mask", ElementType::kBool, {3}, 90)};
}

std::string WithHeader(const std::string& header, size_t data_bytes) {
  std::string file(8, '\0');
  StoreLittleEndian<uint64_t>(std::as_writable_bytes(std::span(file)), 0, header.size());
  return file + header + std::string(data_bytes, '\0');
}

TEST(Safetensors, RoundTrips) {
  const std::vector<StateTensor> tensors = Tensors();
  const std::string file = EncodeSafetensors(tensors, {{"format", "pt"}});
  const SafetensorsFile decoded = DecodeSafetensors(file).value();
  EXPECT_THAT(decoded.tensors, testing::UnorderedElementsAreArray(tensors));
  EXPECT_EQ(decoded.tensors.front().name, "seen") << "readers map numbers of 8 bytes in place";
  EXPECT_EQ(decoded.metadata.at("format"), "pt");
}

TEST(Safetensors, LayoutIsTheFormats) {
  const std::string file = EncodeSafetensors(
      std::vector{StateTensor{"w",
                              ElementType::kF32,
                              {1},
                              Bytes{std::byte{0}, std::byte{0}, std::byte{0x80}, std::byte{0x3f}}}},
      {});
  const std::string header = R"({"w":{"data_offsets":[0,4],"dtype":"F32","shape":[1]}})";
  EXPECT_EQ(LoadLittleEndian<uint64_t>(AsBytes(file), 0) % 8, 0u) << "tensors are aligned";
  EXPECT_EQ(file.substr(8, header.size()), header);
  EXPECT_EQ(file.substr(file.size() - 4), std::string("\0\0\x80\x3f", 4));
}

TEST(Safetensors, NoTensorsAndEmptyTensorsAreFiles) {
  EXPECT_TRUE(DecodeSafetensors(EncodeSafetensors({}, {})).ok());
  EXPECT_TRUE(DecodeSafetensors(WithHeader("{}", 0)).ok());
  EXPECT_TRUE(DecodeSafetensors(
                  WithHeader(R"({"a":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]}})", 0))
                  .ok());
}

TEST(Safetensors, EachFaultIsNamed) {
  const auto error = [](const std::string& file) {
    return DecodeSafetensors(file).status().message();
  };
  EXPECT_THAT(error("abc"), HasSubstr("shorter"));
  EXPECT_THAT(error(std::string(8, '\xff')), HasSubstr("beyond the file's end"));
  EXPECT_THAT(error(WithHeader("[", 0)), HasSubstr("not JSON"));
  EXPECT_THAT(error(WithHeader("[]", 0)), HasSubstr("not a map"));
  EXPECT_THAT(error(WithHeader(R"({"a":{"dtype":"F7","shape":[1],"data_offsets":[0,2]}})", 2)),
              HasSubstr("F7"));
  EXPECT_THAT(error(WithHeader(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4)),
              HasSubstr("do not fit"));
  EXPECT_THAT(error(WithHeader(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4)),
              HasSubstr("do not fit"));
  EXPECT_THAT(
      error(WithHeader(
          R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0)),
      HasSubstr("do not fit"));
  EXPECT_THAT(error(WithHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8)),
              HasSubstr("gap"));
  EXPECT_THAT(error(WithHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 3)),
              HasSubstr("bytes of data"));
}

TEST(Safetensors, EveryCutIsRefused) {
  const std::string file = EncodeSafetensors(Tensors(), {});
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(DecodeSafetensors(std::string_view(file).substr(0, size)).ok()) << size;
}

RC_GTEST_PROP(Safetensors, AnyBytesAreSafe, (const std::string& bytes)) {
  (void)DecodeSafetensors(bytes);
  (void)DecodeSafetensors(WithHeader(bytes, 8));
}

}  // namespace
}  // namespace lambdadnn
