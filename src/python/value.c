// SPDX-License-Identifier: MIT
#include <perfscope/python_types.h>

PyObject *ps_text_to_python(const char *text, size_t size)
{
	return PyUnicode_DecodeUTF8(text, size, "surrogateescape");
}

/** Element @at of the integers in @value. */
static PyObject *element_to_python(const struct ps_value *value, size_t at)
{
	const uint8_t *data = value->bytes.data + at * value->element_size;
	switch (value->element_size) {
	case 2: {
		uint16_t element;
		memcpy(&element, data, sizeof(element));
		if (value->is_swapped)
			element = __builtin_bswap16(element);
		return ps_int_to_python(value->is_signed ? (int16_t)element : element);
	}
	case 4: {
		uint32_t element;
		memcpy(&element, data, sizeof(element));
		if (value->is_swapped)
			element = __builtin_bswap32(element);
		return ps_int_to_python(value->is_signed ? (int64_t)(int32_t)element : element);
	}
	default: {
		uint64_t element;
		memcpy(&element, data, sizeof(element));
		if (value->is_swapped)
			element = __builtin_bswap64(element);
		return value->is_signed ? ps_int_to_python((int64_t)element)
					: ps_unsigned_to_python(element);
	}
	}
}

static PyObject *array_to_python(const struct ps_value *value)
{
	size_t nr = value->bytes.size / value->element_size;
	PyObject *tuple = PyTuple_New(nr);
	if (!tuple)
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		PyObject *element = element_to_python(value, i);
		if (!element) {
			Py_DECREF(tuple);
			return NULL;
		}
		PyTuple_SET_ITEM(tuple, i, element);
	}
	return tuple;
}

/** The byte that has @bit of a bitmap: it is an array of longs, each in the byte order of its machine. */
static size_t byte_of_bit(const struct ps_value *value, size_t bit)
{
	bool is_big_endian = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != value->is_swapped;
	return is_big_endian ? bit / 8 ^ (value->element_size - 1) : bit / 8;
}

static PyObject *cpumask_to_python(const struct ps_value *value)
{
	_cleanup_pydecref_ PyObject *set = PyFrozenSet_New(NULL);
	if (!set)
		return NULL;
	for (size_t bit = 0; bit < value->bytes.size * 8; bit++) {
		size_t byte = byte_of_bit(value, bit);
		if (byte >= value->bytes.size || !(value->bytes.data[byte] >> (bit % 8) & 1))
			continue;
		_cleanup_pydecref_ PyObject *number = PyLong_FromSize_t(bit);
		if (!number || PySet_Add(set, number) < 0)
			return NULL;
	}
	return_ptr(set);
}

PyObject *ps_value_to_python(const struct ps_value *value)
{
	switch (value->kind) {
	case PS_FIELD_INT:
		return value->is_signed ? ps_int_to_python(value->i64)
					: ps_unsigned_to_python(value->u64);
	case PS_FIELD_STRING:
		return ps_text_to_python((const char *)value->bytes.data, value->bytes.size);
	case PS_FIELD_BYTES:
		return PyBytes_FromStringAndSize((const char *)value->bytes.data,
						 value->bytes.size);
	case PS_FIELD_INT_ARRAY:
		return array_to_python(value);
	case PS_FIELD_CPUMASK:
		return cpumask_to_python(value);
	}
	Py_UNREACHABLE();
}
