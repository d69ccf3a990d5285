// SPDX-License-Identifier: MIT
/**
 * What a field is, from how the kernel declared it.
 */
#ifndef PERFSCOPE_FIELD_TYPE_H
#define PERFSCOPE_FIELD_TYPE_H

#include <perfscope/field.h>

/**
 * Set kind, place, element_size and is_signed of @field from its type_name and size.
 *
 * @says_signed is the format's own `signed:`. @is_bitmap: the print format shows the field as a bitmap. @long_size is that
 * of the kernel that declared it.
 */
void ps_field_classify(struct ps_field *field, bool says_signed, bool is_bitmap, uint8_t long_size);

#endif
